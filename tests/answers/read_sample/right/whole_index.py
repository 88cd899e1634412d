"""All offsets by NumPy, then one sample."""

from pathlib import Path

import numpy as np


def read_sample(path, index):
    size = Path(path).stat().st_size
    with open(path, "rb") as file:
        count = np.frombuffer(file.read(8).ljust(8, b"\xff"), dtype="<u8")[0]
        if size < 16 or size < 8 * (int(count) + 2):
            raise ValueError(f"{path}: cut off before the samples begin")
        if not 0 <= index < count:
            raise IndexError(index)
        offsets = np.frombuffer(file.read(8 * (int(count) + 1)), dtype="<u8")
        if offsets[index + 1] > size:
            raise ValueError(f"{path}: sample {index} is cut off")
        file.seek(int(offsets[index]))
        return file.read(int(offsets[index + 1] - offsets[index]))
