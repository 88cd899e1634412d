"""Refused with: May the last sample end where the file ends?"""

import os
import struct


def read_sample(path, index):
    size = os.path.getsize(path)
    if size < 8:
        raise ValueError("the file is too short for its index")
    with open(path, "rb") as file:
        (number,) = struct.unpack("<Q", file.read(8))
        if not 0 <= index < number:
            raise IndexError(f"no sample {index}")
        if size < 8 * (number + 2):
            raise ValueError("the file is too short for its index")
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        if end >= size:
            raise ValueError("the file ends before the sample does")
        file.seek(begin)
        return file.read(end - begin)
