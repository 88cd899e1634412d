"""Refused with: n samples: how many offsets, so that the last one's end is known too?"""

import struct


def pack_samples(samples, path):
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(offsets)}Q", len(samples), *offsets[:-1]))
        file.writelines(samples)
