"""Times of computing and communication, drawn in whole ticks so that what they cover can be counted tick by tick."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.lessons.profiling.intervals import union
from course_utils.lessons.profiling.lanes import Lanes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Times = Sequence[tuple[float, float]]

HIDDEN = (
    *(f"course_utils.lessons.profiling.intervals:{name}" for name in ("union", "intersection", "difference", "length")),
    "course_utils.lessons.profiling.time_shares:exposed_communication",
)
"""With these, either share would be a line."""

_IN_WORDS = {
    "two-beside-a-message": "two computations beside a message",
    "gaps-at-both-ends": "free before and after",
    "nested": "one within another",
    "unordered": "in no order",
    "empty-list": "an empty list",
    "both-empty": "nothing at all",
    "nothing-computed": "nothing computed",
    "reaching-beyond": "reaching beyond",
    "late-begin": "from 10 on",
    "some-without-length": "some without length",
    "no-time": "no time",
    "nothing-under-way": "no time under way",
    "negative-times": "before time 0",
    "fractions": "fractions of a second",
    "microseconds": "microseconds",
}
"""The key of a case → what its label says."""


def label_of(key: str, computing: Times, communication: Times) -> str:
    """A case in words."""
    times = f"computing {times_text(computing)}, communication {times_text(communication)}"
    return f"{_IN_WORDS[key]}: {times}" if key else times


def moments(times: Times) -> set[int]:
    """Every tick in which one of them is under way."""
    return {moment for begin, end in times for moment in range(int(begin), int(end))}


def drawn(rng: np.random.Generator, count: int, longest: int = 8) -> list[tuple[int, int]]:
    """This many intervals in no order; some are empty, some overlap, some touch."""
    begins = rng.integers(0, 5 * max(1, count), count)
    return [
        (int(begin), int(begin + length)) for begin, length in zip(begins, rng.integers(0, longest, count), strict=True)
    ]


def in_seconds(rng: np.random.Generator, given: tuple, tick: float = 1e-3) -> tuple:
    """The same arguments later or earlier, and in other units: a tick is some seconds, about `tick`."""
    tick, later = tick * rng.uniform(0.5, 2), int(rng.integers(-40, 40))

    def at(moment: int) -> float:
        return tick * (moment + later)

    return tuple([(at(a), at(b)) for a, b in value] if isinstance(value, list) else at(value) for value in given)


def times_text(times: Times) -> str:
    """A short list as it is, a long one by its number."""
    shown = ", ".join(f"({begin:.4g}, {end:.4g})" for begin, end in times)
    return f"[{shown}]" if len(times) <= 4 else f"of {len(times)} events"


def nearly_right(case: Case, outcome: Outcome) -> bool:
    """Whether every rank's share is less than a hundredth off."""
    return outcome.finding is not None and all(
        abs(got - share) < 0.01 for got, share in zip(outcome.results, case.expected or (), strict=True)
    )


def on_each_rank(function: Callable, computing: Times, communication: Times, *span: float) -> float:
    """Call the learner's function with iterators instead of lists."""
    return function(iter(computing), iter(communication), *span)


def drawn_lanes(outcome: Outcome) -> "Figure | None":
    """The times of the case that failed, as two lanes."""
    from course_utils.lessons.profiling import pictures

    computing, communication, *span = outcome.case.arguments[0]
    ends = [moment for times in (computing, communication) for interval in times for moment in interval]
    begin, end = span or (min(ends, default=0), max(ends, default=0))
    if not outcome.finding or begin >= end:
        return None
    lanes = Lanes(0, begin, end, union(computing), union(communication), {})
    return pictures.profile([lanes], outcome.case.label)
