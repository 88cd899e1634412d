"""The file as memory."""

import mmap
import os


def read_sample(path, index):
    if os.path.getsize(path) < 8:
        raise ValueError("there is not even a number of samples: the file is cut off")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        numbers = memoryview(memory)
        try:
            count = int.from_bytes(numbers[:8], "little")
            if len(memory) < 8 * (count + 2):
                raise ValueError("the index is cut off")
            if index < 0 or index >= count:
                raise IndexError(f"{index} of {count}")
            begin, end = (int.from_bytes(numbers[8 * i : 8 * i + 8], "little") for i in (index + 1, index + 2))
            if end > len(memory):
                raise ValueError("the sample is cut off")
            return bytes(numbers[begin:end])
        finally:
            numbers.release()
