"""Measuring on a machine that others may use too: again and again, the median, and how far the values lie apart.

Two rates describe a machine for the roofline: how fast it multiplies matrices, and how fast it moves bytes.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

CALM = 0.15
"""The middle half of the values lies within this share of the median where nothing disturbs the measurement."""
MATRIX = 1024
_LEAST_ARRAY, _MOST_ARRAY = 64 << 20, 256 << 20  # bytes


@dataclass(frozen=True)
class Measured:
    """The values of one quantity, measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value in the middle: a few disturbed ones do not move it."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)

    @property
    def spread(self) -> float:
        """The width of the middle half of the values, as a share of the median."""
        if len(self.values) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.values, n=4, method="inclusive")
        return (third - first) / self.median

    @property
    def calm(self) -> bool:
        """Whether the values lie close enough together to compare them with others."""
        return self.spread <= CALM

    def times(self, factor: float) -> "Measured":
        """Each value multiplied."""
        return Measured(tuple(factor * value for value in self.values))

    def rate(self, amount: float) -> "Measured":
        """`amount` per second, where the values are the seconds that it took."""
        return Measured(tuple(amount / value for value in self.values))


def repeat(work: Callable[[], object], repeats: int = 9, warm_ups: int = 2) -> Measured:
    """The seconds that `work` takes, `repeats` times; the first calls, which prepare things, do not count."""
    for _ in range(warm_ups):
        work()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return Measured(tuple(seconds))


@contextlib.contextmanager
def patience(text: str) -> Iterator[Callable[[], None]]:
    """Show the seconds that pass, from the third on: call what this gives between two measurements, never within one.

    Nothing is shown on a machine that has torch, but not the packages that draw the bar.
    """
    try:
        from course_utils.cluster.progress_bar import ProgressBar
    except ImportError:
        yield lambda: None
        return
    with ProgressBar(text) as bar:
        yield bar.look


@contextlib.contextmanager
def using_threads(threads: int | None = None) -> Iterator[int]:
    """Let torch compute with so many threads inside; None: one for each core that this process may use."""
    if not threads:
        from course_utils.cluster.cores import allowed_cores  # brings packages that a machine with a GPU may lack

        threads = allowed_cores()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


def matmul_rate(threads: int | None = None, repeats: int = 9) -> Measured:
    """FLOP per second of a product of two 1024 × 1024 matrices of float32; a multiplication and an addition are two."""
    left, right, product = torch.rand(3, MATRIX, MATRIX)
    with using_threads(threads):
        return repeat(lambda: torch.mm(left, right, out=product), repeats).rate(2 * MATRIX**3)


def memory_bandwidth(threads: int | None = None, repeats: int = 9) -> Measured:
    """Bytes per second of adding two arrays into a third, each larger than the caches: two are read, one is written.

    Source: McCalpin 1995, the STREAM benchmark, "add".
    """
    nbytes = array_bytes()
    left, right, total = torch.ones(3, nbytes // 4)
    with using_threads(threads):
        return repeat(lambda: torch.add(left, right, out=total), repeats).rate(3 * nbytes)


def array_bytes(caches: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Twice the largest cache of this machine, within limits; twice 32 MiB where it does not say."""
    sizes = []
    for file in caches.glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(int(file.read_text().strip().removesuffix("K")) << 10)
    return min(max(2 * max(sizes, default=0), _LEAST_ARRAY), _MOST_ARRAY)


def said(measured: Measured, unit: str, scale: float = 1e-9) -> str:
    """A measurement in words, and whether it can be trusted: "195 GFLOP/s (187 to 198 in 9 runs)"."""
    low, middle, high = (f"{scale * value:.3g}" for value in (measured.low, measured.median, measured.high))
    rest = "" if measured.calm else "; the machine is not at rest"
    return f"{middle} {unit} ({low} to {high} in {len(measured.values)} runs{rest})"
