"""Refused with: Are all samples of one length?"""

import struct


def pack_samples(samples, path):
    begin = 8 * (len(samples) + 2)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(samples)))
        for i in range(len(samples) + 1):
            file.write(struct.pack("<Q", begin + i * len(samples[0])))
        file.writelines(samples)
