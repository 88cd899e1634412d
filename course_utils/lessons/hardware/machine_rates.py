"""What lesson 3 needs to measure a machine: arrays larger than its caches, its threads, and what it really moves.

The page itself measures how fast it computes and moves the bytes that a program asks for.
"""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from course_utils import system
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, by_turns, repeat

_LEAST_ARRAY, _MOST_ARRAY = 64 << 20, 256 << 20  # bytes


@contextlib.contextmanager
def using_threads(threads: int | None = None) -> Iterator[int]:
    """Let torch compute with so many threads inside the block; with None, one for each core that may be used."""
    if not threads:
        threads = allowed_cores()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    """Let torch compute convolutions without oneDNN, the library that it leaves them to on a CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own switch warns about GPUs that it was not built for
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def numbers_moved(threads: int | None = None, rounds: int = 9) -> dict[str, Measured]:
    """Measure how many numbers move for each result of a "sum" into a third array, and of a "copy".

    A program asks for 3 and 2. If a line of memory is fetched before it is written (write-allocate), one more moves.
    The yardstick is a sum *into* one of its two arrays, which has read everything that it writes, so it is certain to
    move 3. How many the others move follows from their times, measured by turns with it.

    Source: McCalpin, "STREAM Benchmark Reference Information", "Counting Bytes and FLOPS": what hardware moves.
    """
    left, right, total = torch.ones(3, array_bytes() // 4)
    works = {
        "yardstick": lambda: left.add_(right),
        "sum": lambda: torch.add(left, right, out=total),
        "copy": lambda: total.copy_(left),
    }
    with using_threads(threads):
        measures = {name: lambda work=work: repeat(work, 1, 0).median for name, work in works.items()}
        seconds = by_turns(measures, rounds, warm_ups=2)
    certain = seconds.pop("yardstick")
    return {
        name: Measured(tuple(3 * own / whole for own, whole in zip(taken, certain, strict=True)))
        for name, taken in seconds.items()
    }


def array_bytes(caches: Path = Path(system.CACHES)) -> int:
    """Return twice the size of this machine's largest cache, within limits, or twice 32 MiB if it doesn't tell."""
    sizes = []
    for file in caches.glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(int(file.read_text().strip().removesuffix("K")) << 10)
    return min(max(2 * max(sizes, default=0), _LEAST_ARRAY), _MOST_ARRAY)
