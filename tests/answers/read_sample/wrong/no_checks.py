"""Refused with: How many samples are there, and from where are they counted?"""

import os
import struct


def read_sample(path, index):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(8), "little")
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        file.seek(begin)
        return file.read(end - begin)
