"""Refused with: Do all offsets stand together, before the first sample?"""

import struct


def pack_samples(samples, path):
    offset = 8 * (len(samples) + 2)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(samples)))
        for sample in samples:
            file.write(struct.pack("<Q", offset))
            file.write(sample)
            offset += len(sample)
        file.write(struct.pack("<Q", offset))
