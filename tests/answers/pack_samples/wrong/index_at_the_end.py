"""Refused with: Do samples stand in front of the index?"""

import struct


def pack_samples(samples, path):
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.writelines(samples)
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
