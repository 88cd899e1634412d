"""How many times as fast one program is as another: both run by turns, in one go, round by round.

A machine that slows down half-way slows both. What other programs do can only add time, so the quickest run of each is
nearest to what the program takes: their ratio judges; the median of all rounds' ratios, and its spread, are there to
be shown. (Source: Python documentation, `timeit`, note on `repeat`.)
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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
