"""A checkpoint in pieces: each rank writes its own part of a vector, and any number of ranks can read it again."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.failures.reshard import reshard
from course_utils.own_files import whole_file

TABLE = "table.json"
"""The file that lists which numbers are in which file. It is written last, so without it nothing is complete."""


class LoadedPiece(NamedTuple):
    """What a rank has read.

    Attributes:
        numbers: its part of the vector.
        reads: (file, first, last) of each read.
    """

    numbers: np.ndarray
    reads: list[tuple[int, int, int]]


def write_array(file: Path, array: np.ndarray) -> None:
    """Write an array into a file of NumPy's format, whatever the file's name ends with, and wait for the disk."""
    with file.open("wb") as stream:
        np.save(stream, array)
        stream.flush()
        os.fsync(stream.fileno())  # without it, the system may still hold it in memory


def save_piece(folder: Path, rank: int, piece: np.ndarray) -> None:
    """Write a rank's part of the vector into a file of its own."""
    write_array(folder / f"piece_{rank}.npy", piece)


def write_table(folder: Path, saved: Sequence[tuple[int, int]]) -> None:
    """Write which numbers each file holds, after all files are complete."""
    with whole_file(folder / TABLE) as stream:
        stream.write(json.dumps([list(bounds) for bounds in saved]).encode())


def load_piece(folder: Path, begin: int, end: int) -> LoadedPiece:
    """Read the numbers `begin` to `end` of the vector from the files that hold them, and no others.

    Raises:
        CourseError: there is no complete checkpoint in the folder, or it does not hold these numbers.
    """
    if not (folder / TABLE).is_file():
        raise CourseError(f"{folder} holds no complete checkpoint: {TABLE}, which is written last, is missing.")
    saved = [(first, last) for first, last in json.loads((folder / TABLE).read_text())]
    reads = reshard(saved, begin, end)
    # A memory-mapped file is read only where it is looked at.
    parts = [np.load(folder / f"piece_{file}.npy", mmap_mode="r")[first:last] for file, first, last in reads]
    return LoadedPiece(np.concatenate([np.empty(0), *parts]), reads)
