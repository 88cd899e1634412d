"""Refused with: Are the samples before the cut still whole?"""

import os
import struct


def read_sample(path, index):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(8), "little")
        if size < 8 + 8 * (count + 1):
            raise ValueError("the file is cut off in its index")
        file.seek(8 + 8 * count)
        if size < int.from_bytes(file.read(8), "little"):
            raise ValueError("the file is cut off")
        if not 0 <= index < count:
            raise IndexError(f"there are {count} samples")
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        if size < end:
            raise ValueError("the file is cut off in this sample")
        file.seek(begin)
        return file.read(end - begin)
