"""Offsets by a cumulative sum."""

import numpy as np


def pack_samples(samples, path):
    lengths = np.array([len(sample) for sample in samples], dtype="<u8")
    first = 8 * (len(samples) + 2)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("<u8") + np.uint64(first)
    with open(path, "wb") as file:
        np.array([len(samples)], dtype="<u8").tofile(file)
        offsets.astype("<u8").tofile(file)
        file.write(b"".join(samples))
