"""Photos to read: handwritten digits as JPEG files, single or packed, and the data sets from which torch reads them."""

import io
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from course_utils.download import data_folder
from course_utils.lessons.hardware.packed_samples import read_sample

SIDE, SHRUNK = 160, 32  # pixels of a photo, and of the image that the network sees


def jpeg_digits(count: int = 600) -> list[bytes]:
    """Return the first handwritten digits as JPEG photos of 160 × 160 pixels in three channels, about 3 KB each."""
    from PIL import Image
    from sklearn.datasets import load_digits

    found = []
    for digit in load_digits().images[:count]:
        image = Image.fromarray((15 * digit).astype(np.uint8)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        image.convert("RGB").save(file, format="JPEG", quality=85)
        found.append(file.getvalue())
    return found


def decode(photo: bytes) -> torch.Tensor:
    """Return the photo as float32 of shape (3, 32, 32), from 0 to 1. This is work for a core, not for the disk."""
    from PIL import Image

    with Image.open(io.BytesIO(photo)) as image:
        small = image.convert("RGB").resize((SHRUNK, SHRUNK), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.asarray(small, dtype=np.float32) / 255).permute(2, 0, 1).contiguous()


def working_folder() -> tempfile.TemporaryDirectory:
    """Make a folder next to the course's data for this notebook's files; it is deleted when the notebook ends."""
    home = data_folder()
    try:
        home.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="photos-", dir=home)
    except OSError:
        return tempfile.TemporaryDirectory(prefix="course-photos-")


def write_one(photo: bytes, path: Path) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(photo)
        file.flush()
        os.fsync(file.fileno())


def write_photos(photos: Sequence[bytes], folder: Path) -> list[Path]:
    """Write each photo into a file of its own, 0000.jpg and so on, and wait until the disk has them."""
    paths = [folder / f"{number:04}.jpg" for number in range(len(photos))]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write_one, photos, paths))
    return paths


class PhotoFiles(Dataset):
    """One file for each photo."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return decode(self.paths[index].read_bytes())


class PackedPhotos(Dataset):
    """All photos in one file that `pack_samples` wrote.

    It keeps the path and no open file. Each worker opens the file itself, so none can move the position of another.
    """

    def __init__(self, path: str | os.PathLike, count: int) -> None:
        self.path, self.count = path, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return decode(read_sample(self.path, index))


def disk_bytes(paths: Sequence[Path]) -> int:
    """Return the bytes that files take up on the disk, in whole blocks for each."""
    return sum(512 * os.stat(path).st_blocks for path in paths)


def readers(paths: Sequence[Path], packed: str | os.PathLike) -> dict:
    """Return a function for each kind of storage that reads photo number i without decoding it."""
    return {"one file each": lambda index: paths[index].read_bytes(), "packed": partial(read_sample, packed)}
