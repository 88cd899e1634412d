"""Measuring on a machine that others may use too: again and again, the median, and how far the values lie apart.

Two rates describe a machine for the roofline: how fast it multiplies matrices, and how fast it moves bytes. A program
counts the bytes that it asks for; `numbers_moved` measures how many the hardware moves.
"""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from course_utils import system
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, by_turns, repeat

MATRIX = 1024
REPEATS = 9
_LEAST_ARRAY, _MOST_ARRAY = 64 << 20, 256 << 20  # bytes


@contextlib.contextmanager
def using_threads(threads: int | None = None) -> Iterator[int]:
    """Let torch compute with this many threads inside; None: one for each core that this process may use."""
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


def matmul_rate() -> Measured:
    """FLOP per second of a product of two 1024 × 1024 matrices of float32; a multiplication and an addition are two."""
    left, right, product = torch.rand(3, MATRIX, MATRIX)
    with using_threads(None):
        return repeat(lambda: torch.mm(left, right, out=product), REPEATS).rate(2 * MATRIX**3)


def memory_bandwidth() -> Measured:
    """Bytes per second of adding two arrays into a third, each larger than the caches: two are read, one is written.

    It counts what the program asks for, as STREAM does; `numbers_moved` says what else the hardware moves.

    Source: McCalpin 1995, the STREAM benchmark, "add".
    """
    nbytes = array_bytes()
    left, right, total = torch.ones(3, nbytes // 4)
    with using_threads(None):
        return repeat(lambda: torch.add(left, right, out=total), REPEATS).rate(3 * nbytes)


def numbers_moved(threads: int | None = None, rounds: int = 9) -> dict[str, Measured]:
    """How many numbers move between memory and processor for each result: of a "sum" into a third array, of a "copy".

    A program counts 3 and 2. Where a line of memory is fetched before it is written (write-allocate), it is one more.
    The yardstick is a sum *into* one of its two arrays: whatever it writes, it has read. So it moves 3 for certain, and
    the others as many as their time says, by turns with it.

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
    """Twice the largest cache of this machine, within limits; twice 32 MiB where it does not say."""
    sizes = []
    for file in caches.glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(int(file.read_text().strip().removesuffix("K")) << 10)
    return min(max(2 * max(sizes, default=0), _LEAST_ARRAY), _MOST_ARRAY)
