"""Many samples in one file, with an index in front: any of them can be read without the others.

    8 bytes                 n, the number of samples
    8 · (n + 1) bytes       where each sample begins, counted from the file's first byte, and where the last one ends
    the rest                the samples, one after the other

All numbers are unsigned, of 8 bytes, the lowest byte first (little-endian; `struct` writes "<Q").
"""

import os
import struct
from collections.abc import Sequence


def pack_samples(samples: Sequence[bytes], path: str | os.PathLike) -> None:
    """Write all samples into one new file: their number n, n + 1 offsets, then the samples
    themselves.

    The numbers are unsigned, of 8 bytes, little-endian: `struct.pack("<Q", number)`. Offset i says
    where sample i begins, counted from the first byte of the file; offset i + 1 says where it ends.
    A file that is already there is replaced.

    Args:
        samples: of any lengths, also 0; left as they are.
        path: the file.
    """
    # The first sample begins behind the number n and the n + 1 offsets.
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}Q", len(samples), *offsets))
        file.writelines(samples)


def read_sample(path: str | os.PathLike, index: int) -> bytes:
    """Sample `index` of a file that `pack_samples` wrote, and nothing else of it. Any number of
    ranks may read at once.

    Raises:
        IndexError: the file has no sample of this number; numbers below 0 are none.
        ValueError: the file ends before its index does, or before this sample does. The error's
            text says so.
    """
    # A copy that broke off looks like a whole file: compare its size before believing its offsets.
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(8), "little")
        if size < 8 + 8 * (count + 1):
            raise ValueError(f"{path} is cut off: it ends at byte {size}, inside its index. Pack it again.")
        if not 0 <= index < count:
            raise IndexError(f"{path} holds {count} samples, counted from 0; there is no {index}.")
        # Two offsets are all of the index that one sample needs.
        file.seek(8 + 8 * index)
        begin, end = struct.unpack("<QQ", file.read(16))
        if size < end:
            raise ValueError(
                f"{path} is cut off: sample {index} ends at byte {end}, the file at {size}. Pack it again."
            )
        file.seek(begin)
        return file.read(end - begin)
