"""How long it takes to read samples: from the disk or from memory, alone or with workers.

Linux keeps files that were read or written in memory, in the page cache, and takes them from there the next time. Such
a file is *warm*. If the system is asked to forget a file, which needs no root, it becomes *cold*. The system's own
counter tells whether the bytes really came from the disk. If they didn't, or if nothing counts them, the times are
called warm.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

from course_utils import system
from course_utils.measuring import Measured
from course_utils.progress_bar import ProgressBar

WAYS = ("one file each", "packed")


@dataclass(frozen=True)
class Reading:
    """The time for all samples, in a random order.

    Attributes:
        seconds: of each round.
        cold: whether the bytes came from the disk, in every round.
    """

    seconds: Measured
    cold: bool


def forget(paths: Sequence[Path]) -> None:
    """Ask the system to drop these files from its cache; if it can't be asked, nothing happens."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            system.forget(descriptor)
        finally:
            os.close(descriptor)


def from_disk() -> int:
    """Return the bytes that this process has had to fetch from a disk so far, or 0 if the system doesn't count them."""
    return system.own_io("read_bytes")


def time_reading(
    read: Callable[[int], bytes], count: int, paths: Sequence[Path], cold: bool, rounds: int = 3
) -> Reading:
    """Read samples 0 to count − 1 in a random order, `rounds` times.

    Args:
        read: returns the bytes of a sample.
        paths: the files that the samples are in; forgotten before each round if `cold`.
    """
    seconds, fetched = [], []
    for number in range(rounds):
        order = random.Random(number).sample(range(count), count)
        if cold:
            forget(paths)
        before, began = from_disk(), time.perf_counter()
        got = sum(len(read(index)) for index in order)
        seconds.append(time.perf_counter() - began)
        fetched.append(from_disk() - before >= 0.9 * got)
    return Reading(Measured(tuple(seconds)), all(fetched))


def time_workers(dataset: Dataset, workers: int, batch_size: int = 50, rounds: int = 3) -> Measured:
    """Measure the seconds of an epoch through a DataLoader with so many workers; starting them doesn't count."""
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    seconds = []
    with ProgressBar("reading the photos") as bar:
        for _ in range(rounds + 1):
            bar.refresh()
            began = time.perf_counter()
            for _ in loader:
                pass
            seconds.append(time.perf_counter() - began)
    return Measured(tuple(seconds[1:]))


def groups(cold: Mapping[str, Reading], warm: Mapping[str, Reading]) -> dict[str, dict[str, Measured]]:
    """Return the seconds for a picture: cold and warm, or only warm if not all of the bytes came from the disk."""
    shown = {"warm": {storage: reading.seconds for storage, reading in warm.items()}}
    if all(reading.cold for reading in cold.values()):
        shown = {"cold": {storage: reading.seconds for storage, reading in cold.items()}, **shown}
    return shown
