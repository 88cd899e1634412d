"""Refused with: Are all of the sample's bytes there? Does `read` complain if they are not?"""

import os
import struct


def read_sample(path, index):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(8), "little")
        if size < 8 + 8 * (count + 1):
            raise ValueError("the file is cut off in its index")
        if not 0 <= index < count:
            raise IndexError(f"there are {count} samples")
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        file.seek(begin)
        return file.read(end - begin)
