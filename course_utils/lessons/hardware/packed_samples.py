"""Many samples in one file that begins with an index, so that each of them can be read without the others.

    8 bytes                 n, the number of samples
    8 · (n + 1) bytes       where each sample begins, counted from the file's first byte, and where the last one ends
    the rest                the samples, one after the other

All numbers are unsigned and take 8 bytes, the lowest byte first (little-endian, "<Q" for `struct`).
"""

import os
import struct
from collections.abc import Sequence


def pack_samples(samples: Sequence[bytes], path: str | os.PathLike) -> None:
    """Write all samples into one new file: first their number n, then n + 1 offsets, then the
    samples themselves.

    Each number takes 8 bytes, unsigned and little-endian: `struct.pack("<Q", number)`. Offset i is
    the position at which sample i begins, counted from the first byte of the file, and offset i + 1
    is the position at which it ends. If the file exists already, it is replaced. No other file is
    left beside it.

    Args:
        samples: of any length, even 0. They must not be changed.
        path: of the file.
    """
    # The first sample begins after the number n and the n + 1 offsets.
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
        file.writelines(samples)


def read_sample(path: str | os.PathLike, index: int) -> bytes:
    """Return sample `index` of a file that `pack_samples` has written, without reading the other
    samples, or more of the index than the two offsets of this sample. Any number of ranks may read
    the file at once, and it may be replaced by another one between two calls.

    Raises:
        IndexError: if there is no such sample. Negative numbers aren't allowed.
        ValueError: if the file ends before the end of its index, or before the end of this sample.
            The text of the error tells what is wrong. If both errors are due, either will do.
    """
    # If a copy broke off, its beginning looks like that of a whole file. So compare its size
    # before trusting its offsets.
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(8), "little")
        if size < 8 + 8 * (count + 1):
            raise ValueError(f"{path} is cut off: it ends at byte {size}, inside its index. Pack it again.")
        if not 0 <= index < count:
            raise IndexError(f"{path} holds {count} samples, counted from 0; there is no {index}.")
        # For one sample, two offsets are all that is needed from the index.
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        if size < end:
            raise ValueError(
                f"{path} is cut off: sample {index} ends at byte {end}, the file at {size}. Pack it again."
            )
        file.seek(begin)
        return file.read(end - begin)
