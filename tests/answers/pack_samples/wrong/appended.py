"""Refused with: What becomes of a file that is there already?"""

import struct


def pack_samples(samples, path):
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "ab") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
        file.writelines(samples)
