"""Refused with: How much of the file must be read for one sample?"""

import struct
from pathlib import Path


def read_sample(path, index):
    content = Path(path).read_bytes()
    count = int.from_bytes(content[:8], "little")
    if len(content) < 8 + 8 * (count + 1):
        raise ValueError("cut off in the index")
    if not 0 <= index < count:
        raise IndexError(f"there are {count} samples")
    begin, end = struct.unpack("<QQ", content[8 + 8 * index : 24 + 8 * index])
    if len(content) < end:
        raise ValueError("cut off in the sample")
    return content[begin:end]
