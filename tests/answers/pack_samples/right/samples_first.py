"""The samples first, with a gap in front that is filled afterwards; it prints."""

import struct
from pathlib import Path


def pack_samples(samples, path):
    n = len(samples)
    with Path(path).open("wb+") as file:
        file.seek(16 + 8 * n)
        offsets = [file.tell()]
        for sample in samples:
            file.write(sample)
            offsets.append(file.tell())
            print(offsets[-1], end=" ")
        file.seek(0)
        file.write(struct.pack("<Q", n))
        for offset in offsets:
            file.write(struct.pack("<Q", offset))
