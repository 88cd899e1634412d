"""How long it takes to read samples: from the disk or from memory, alone or with workers.

Linux keeps what was read or written in memory, the page cache, and reads it from there the next time: *warm*. Asking
the system to forget a file (`posix_fadvise`, no root needed) makes it *cold*; whether the bytes then really came from
the disk is read from the system's own count. Where they did not, the times are called warm.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

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
    """Ask the system to drop these files from its cache; where it cannot be asked, nothing happens."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def from_disk(proc: Path = Path("/proc/self/io")) -> int:
    """Bytes that this process has had to fetch from a disk so far; 0 where the system does not count them."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes")), 0)


def time_reading(
    read: Callable[[int], bytes], count: int, paths: Sequence[Path], cold: bool, rounds: int = 3
) -> Reading:
    """Read samples 0 to count − 1 in a random order, `rounds` times.

    Args:
        read: gives the bytes of a sample.
        paths: the files that the samples lie in; forgotten before each round if `cold`.
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
    """Seconds for an epoch through a DataLoader with so many worker processes; starting them does not count."""
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    seconds = []
    with ProgressBar("reading the photos") as bar:
        for _ in range(rounds + 1):
            bar.look()
            began = time.perf_counter()
            for _ in loader:
                pass
            seconds.append(time.perf_counter() - began)
    return Measured(tuple(seconds[1:]))


def groups(cold: Mapping[str, Reading], warm: Mapping[str, Reading]) -> dict[str, dict[str, Measured]]:
    """The seconds for a picture: cold and warm; only warm where not all of the bytes came from the disk."""
    shown = {"warm": {way: one.seconds for way, one in warm.items()}}
    if all(one.cold for one in cold.values()):
        shown = {"cold": {way: one.seconds for way, one in cold.items()}, **shown}
    return shown


def reading_sentence(cold: Mapping[str, Reading], warm: Mapping[str, Reading]) -> str:
    """What packing gains, with an empty cache if that could be had, and with a full one."""
    ratios = {}
    for name, times in (("cold", cold), ("warm", warm)):
        many, packed = (times[way].seconds.median for way in WAYS)
        ratios[name] = many / packed
    if not all(reading.cold for reading in cold.values()):
        return (
            "Warm only: this file system would not forget, or does not say where bytes come from. "
            f"One file each takes {ratios['warm']:.1f} times as long as packed."
        )
    text = f"From the disk, one file each takes {ratios['cold']:.1f} times as long as packed"
    text += f"; from memory {ratios['warm']:.1f} times."
    if ratios["cold"] > 1.2 > ratios["warm"]:
        text += " It is the disk that minds many small files, each a request of its own."
    if ratios["warm"] < 0.9:
        text += " There packed loses: read_sample opens the file and jumps twice, for each photo."
    if ratios["cold"] < 1.2:
        text += " This disk, or a cache behind it, hardly minds small files."
    return text


def workers_sentence(seconds: Mapping[str, Mapping[int, Measured]], cores: int) -> str:
    """Which number of workers was fastest for packed photos, and why that may be."""
    times = {workers: measured.median for workers, measured in seconds["packed"].items()}
    best = min(times, key=times.__getitem__)
    most, gain = max(times), times[0] / times[best]
    if gain < 1.1:
        return (
            "For packed photos workers gain nothing: handing the images over costs as much as decoding them, or no "
            "core is free."
        )
    text = f"For packed photos {best} worker{'s are' if best > 1 else ' is'} {gain:.1f} times as fast as none."
    if gain > 1.1 * (best + 1):
        return f"{text} More than {best + 1} processes can explain: the machine was busy, look at the whiskers."
    if best == most and cores >= most:
        return f"{text} Decoding is work for cores, and each worker is a process with a core of its own."
    return f"{text} More than that gain nothing on {cores} core{'s' if cores > 1 else ''}."
