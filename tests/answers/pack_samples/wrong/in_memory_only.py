"""Refused with: Is something written to `path`?"""

import io
import struct


def pack_samples(samples, path):
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    file = io.BytesIO()
    file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
    file.write(b"".join(samples))
