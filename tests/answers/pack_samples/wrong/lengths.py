"""Refused with: Does offset i say where sample i begins, or how long it is?"""

import struct


def pack_samples(samples, path):
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(samples)))
        for sample in samples:
            file.write(struct.pack("<Q", len(sample)))
        file.write(struct.pack("<Q", 0))
        file.writelines(samples)
