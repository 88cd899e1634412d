"""Refused with: Is there anything between one sample and the next?"""

import struct


def pack_samples(samples, path):
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
        file.writelines(sample + b"\n" for sample in samples)
