"""Measuring on a machine that others may use too: again and again, and by turns where two things are compared.

One quantity is its median and how far its values lie apart (`Measured`). Two programs run by turns, A B A B: run k of
both belongs together, so that a machine that slows down half-way slows both. How many times as fast one is as the other
is the median of the rounds' ratios, and one rule says whether that is a difference at all (`Compared`). Another rule
says whether anything can be compared (`is_busy`), and `BUSY` is the sentence of all lessons where nothing can. Lesson 3
explains it. (Source: Hoefler & Belli 2015, "Scientific Benchmarking of Parallel Computing Systems", §3: medians and the
spread around them, as times are not normally distributed.)
"""

import math
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from course_utils.words import count, number_text

Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")

CALM = 0.2
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
    def width(self) -> float:
        """The width of the middle half of the values; 0 for a single value."""
        if len(self.values) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.values, n=4, method="inclusive")
        return third - first

    @property
    def spread(self) -> float:
        """The width of the middle half of the values, as a share of the median."""
        if not self.width:
            return 0.0
        return self.width / self.median if self.median else math.inf

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


def by_turns(measures: Mapping[Name, Callable[[], Value]], rounds: int, warm_ups: int = 0) -> dict[Name, list[Value]]:
    """Take every measure `rounds` times: A B A B …; `warm_ups` rounds before them do not count."""
    taken: dict[Name, list[Value]] = {name: [] for name in measures}
    for number in range(-warm_ups, rounds):
        for name, measure in measures.items():
            value = measure()
            if number >= 0:
                taken[name].append(value)
    return taken


TIE = 0.05
"""Values nearer than this share are a tie."""
AGREEING = 0.8
"""In at least this share of the rounds the same one must be faster, or the two are a tie."""


def tied(first: float, other: float) -> bool:
    """Whether two values that were not measured by turns, such as medians of two days, are a tie: within `TIE`."""
    return not larger(first, other) and not larger(other, first)


def larger(first: float, other: float) -> bool:
    """Whether one such value is larger than another, and it is no tie."""
    return first > (1 + TIE) * other


NEAR = 0.15
"""A prediction that is off by no more than this share is right."""


def relative_errors(predicted: Iterable[float], measured: Iterable[float]) -> list[float]:
    """How far each prediction is off, as a share of what was measured."""
    return [abs(guess / value - 1) for guess, value in zip(predicted, measured, strict=True)]


@dataclass(frozen=True)
class Compared:
    """Two programs, measured by turns.

    Attributes:
        first, second: seconds of each, round by round; on ranks those of the rank that took longest. Run k of both
            belongs together.
        names: what sentences call them.
    """

    first: Sequence[float]
    second: Sequence[float]
    names: tuple[str, str] = ("the first", "the second")

    @property
    def ratios(self) -> Measured:
        """second ÷ first of each round: how many times as fast the first was."""
        return Measured(tuple(second / first for first, second in zip(self.first, self.second, strict=True)))

    @property
    def times(self) -> float:
        """How many times as fast the first is as the second: the median of the rounds."""
        return self.ratios.median

    @property
    def is_tie(self) -> bool:
        """Whether neither is faster: the median is within `TIE` of 1, or the rounds disagree on which is faster."""
        return tied(self.times, 1) or self._agreeing < AGREEING * len(self.ratios.values)

    @property
    def is_busy(self) -> bool:
        """Whether the rounds scatter so much that they do not agree on which is faster: then nothing is compared."""
        return not self.ratios.calm and self._agreeing < AGREEING * len(self.ratios.values)

    @property
    def _agreeing(self) -> int:
        """In how many rounds the same one is faster as by the median."""
        ratios = self.ratios
        return sum((ratio > 1) == (ratios.median > 1) for ratio in ratios.values)

    @property
    def first_is_faster(self) -> bool:
        """Whether the first is faster, and it is no tie."""
        return self.times > 1 and not self.is_tie

    @property
    def second_is_faster(self) -> bool:
        """Whether the second is faster, and it is no tie."""
        return self.times < 1 and not self.is_tie

    @property
    def bars(self) -> dict[str, Measured]:
        """Both by name, as `course.draw.measured_bars` takes them."""
        return {name: Measured(tuple(own)) for name, own in zip(self.names, (self.first, self.second), strict=True)}

    @property
    def title(self) -> str:
        """What `str` says, with a capital: the finding over a picture."""
        return str(self)[:1].upper() + str(self)[1:]

    def __str__(self) -> str:
        """ "ring is 1.80 times as fast as tree (1.60 to 1.90 in 5 rounds)", no clear difference, or `BUSY`."""
        if self.is_busy:
            return BUSY
        ratios, (first, second) = self.ratios, self.names
        rounds = f"in {count(len(ratios.values), 'round')}"
        if self.is_tie:
            return f"{first} and {second}: no clear difference ({range_text(ratios)} times as fast, {rounds})"
        if self.times < 1:
            return str(Compared(self.second, self.first, (second, first)))
        return f"{first} is {times_text(ratios.median)} times as fast as {second} ({range_text(ratios)} {rounds})"


def times_text(times: float) -> str:
    """A factor in words, with two decimals where it is near 1: "1.06", "3.4"."""
    return f"{times:.2f}" if times < 2 else number_text(times)


def range_text(ratios: Measured) -> str:
    """How far factors lie apart: "1.02 to 2.1"."""
    low, high = times_text(ratios.low), times_text(ratios.high)
    return low if low == high else f"{low} to {high}"


BUSY = "The machine was busy with other work, so this comparison means nothing here"
"""The sentence of all lessons where `is_busy`: it takes the place of the finding, and nothing is judged."""
STRETCHED = 1.1
"""What takes more than this many times as long as planned was disturbed, where the plan leaves no other cause."""


def is_busy(
    quantities: Iterable[Sequence[float]] = (),
    part: Sequence[float] | None = None,
    planned: Sequence[float] | None = None,
) -> bool:
    """Whether something else kept the machine too busy to compare what was measured: the rule of all lessons.

    It asks the values alone, and never whether they are what the text expects. Two programs that ran by turns have the
    same rule for their ratios, `Compared.is_busy`.

    Args:
        quantities: the values of each. Half of them are not calm on a busy machine.
        part: seconds of something that each of them does, and more, measured by turns with them. Where it is given, the
            machine is busy if any of them is faster than this part of it.
        planned: seconds that each of them waits by a clock, such as ranks that sleep, for any machine can do so. Where
            they are given, the machine is busy if the median of any of them is `STRETCHED` times as long.
    """
    taken = [Measured(tuple(values)) for values in quantities]
    if part is not None:
        return any(Compared(whole.values, part).first_is_faster for whole in taken)
    if planned is not None:
        return any(whole.median > STRETCHED * plan for whole, plan in zip(taken, planned, strict=True))
    return bool(taken) and statistics.median(whole.spread for whole in taken) > CALM


def unless_busy(busy: bool, text: str) -> str:
    """Return the text, or `BUSY` in its place."""
    return BUSY if busy else text


MARGIN = 1.1
"""So far beyond the target the factor has to be before the measurement ends early."""


def compare(
    first: Callable[[], object],
    second: Callable[[], object],
    *,
    names: tuple[str, str] = ("the first", "the second"),
    target: float | None = None,
    rounds: int = 9,
    fewest: int = 3,
    warm_up: int = 1,
    slowest: Callable[[float], float] | None = None,
) -> Compared:
    """Run second, first, second, first, … and give back the seconds of each.

    Args:
        first, second: functions without arguments; `functools.partial` makes one.
        target: how many times as fast the first should be. Where given, it ends early when that is clearly reached:
            `MARGIN` times over, after `fewest` rounds.
        rounds: at most; `warm_up` rounds go before them and do not count.
        slowest: on ranks `slowest_rank`: all ranks meet before each run, and the longest time counts on all of them.
    """

    def one_round() -> tuple[float, float]:
        other = _seconds(second, slowest)
        return _seconds(first, slowest), other

    for _ in range(warm_up):
        one_round()
    pairs = []
    for _ in range(rounds):
        pairs.append(one_round())
        taken = Compared(*zip(*pairs, strict=True), names)
        if target and len(pairs) >= fewest and taken.times >= MARGIN * target:
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
