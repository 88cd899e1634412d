"""Measuring on a machine that others may use too: again and again, and by turns where two things are compared.

One quantity is its median and how far its values lie apart (`Measured`). Two programs run by turns, in one go, round by
round: a machine that slows down half-way slows both. What other programs do can only add time, so the quickest run of
each is nearest to what the program takes: their ratio judges (`Ratio`); the median of all rounds' ratios, and its
spread, are there to be shown. (Source: Python documentation, `timeit`, note on `repeat`.)
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

CALM = 0.15
"""The middle half of the values lies within this share of the median where nothing disturbs the measurement."""


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


def rate_text(measured: Measured, unit: str, scale: float = 1e-9) -> str:
    """A measurement in words, and whether it can be trusted: "195 GFLOP/s (187 to 198 in 9 runs)"."""
    low, middle, high = (f"{scale * value:.3g}" for value in (measured.low, measured.median, measured.high))
    rest = "" if measured.calm else "; the machine is not at rest"
    return f"{middle} {unit} ({low} to {high} in {len(measured.values)} runs{rest})"


def interleaved(measures: dict[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
    """Take every measure `runs` times, by turns: A B A B …"""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(runs):
        for name, measure in measures.items():
            taken[name].append(measure())
    return taken


MARGIN = 1.1
"""So far beyond the target the factor has to be before the measurement ends early."""


@dataclass(frozen=True)
class Ratio:
    """What running two programs by turns has given.

    Attributes:
        slow, fast: seconds of each, round by round; on ranks those of the rank that took longest.
    """

    slow: list[float] = field(default_factory=list)
    fast: list[float] = field(default_factory=list)

    @property
    def factor(self) -> float:
        """How many times as fast the fast one is: by the quickest run of each."""
        return min(self.slow) / min(self.fast)

    @property
    def ratios(self) -> list[float]:
        """slow ÷ fast of each round: two runs that were neighbours."""
        return [slow / fast for slow, fast in zip(self.slow, self.fast, strict=True)]

    @property
    def median(self) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios)


def measure_ratio(
    slow: Callable[[], object],
    fast: Callable[[], object],
    *,
    target: float | None = None,
    rounds: int = 9,
    fewest: int = 3,
    warm_up: int = 1,
    slowest: Callable[[float], float] | None = None,
) -> Ratio:
    """Run slow, fast, slow, fast, … and give back the seconds of each.

    Args:
        slow, fast: functions without arguments; `functools.partial` makes one.
        target: the factor that is asked for. Where given, it ends early when it is clearly reached: after `fewest`
            rounds the factor is `MARGIN` times as large, and the median of the rounds' ratios reaches the target, too.
        rounds: at most; `warm_up` rounds go before them and do not count.
        slowest: on ranks `slowest_rank`: all ranks meet before each run, and the longest time counts on all of them.
    """
    taken = Ratio()
    for number in range(warm_up + rounds):
        pair = [_seconds(program, slowest) for program in (slow, fast)]
        if number >= warm_up:
            taken.slow.append(pair[0])
            taken.fast.append(pair[1])
        if target and len(taken.slow) >= fewest and min(taken.factor / MARGIN, taken.median) >= target:
            break
    return taken


def slowest_rank(seconds: float) -> float:
    """The longest time that any rank of torch.distributed's default group brings: one number goes round."""
    import torch
    import torch.distributed as dist

    longest = torch.tensor(seconds, dtype=torch.float64, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return longest.item()


def _seconds(program: Callable[[], object], slowest: Callable[[float], float] | None) -> float:
    """One run of a program. On a GPU it has ended when the GPU has."""
    if slowest:
        slowest(0.0)  # all begin together
    begin = time.perf_counter()
    program()
    _wait_for_gpu()
    seconds = time.perf_counter() - begin
    return slowest(seconds) if slowest else seconds


def _wait_for_gpu() -> None:
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
