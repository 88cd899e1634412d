"""Refused with: What about no samples, and samples of no bytes?"""

import struct


def pack_samples(samples, path):
    samples = [sample for sample in samples if sample]
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
        file.writelines(samples)
