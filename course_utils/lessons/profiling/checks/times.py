"""Times of computing and communication in whole ticks, so that what they cover can be counted moment by moment."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Outcome
from course_utils.lessons.profiling.intervals import union

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Times = Sequence[tuple[float, float]]


def moments(times: Times) -> set[int]:
    """Every tick in which one of them is under way."""
    return {moment for begin, end in times for moment in range(int(begin), int(end))}


def added(times: Times) -> float:
    """Their lengths, added up."""
    return sum(end - begin for begin, end in times)


def drawn(rng: np.random.Generator, count: int, longest: int = 8) -> list[tuple[int, int]]:
    """So many intervals in no order; some are empty, some overlap, some touch."""
    begins = rng.integers(0, 5 * max(1, count), count)
    return [
        (int(begin), int(begin + length)) for begin, length in zip(begins, rng.integers(0, longest, count), strict=True)
    ]


def times_text(times: Times) -> str:
    """A short list as it is, a long one by its number."""
    return str([tuple(one) for one in times]).replace("'", "") if len(times) <= 4 else f"of {len(times)} events"


def on_each_rank(function: Callable, computing: Times, communication: Times, *span: float) -> float:
    """Call the learner's function with iterators instead of lists."""
    return function(iter(computing), iter(communication), *span)


def drawn_lanes(outcome: Outcome) -> "Figure | None":
    """The times of the case that failed, as two lanes."""
    from course_utils.lessons.profiling import pictures
    from course_utils.lessons.profiling.lanes import Lanes

    computing, communication, *span = outcome.case.arguments[0]
    ends = [moment for times in (computing, communication) for one in times for moment in one]
    begin, end = span or (min(ends, default=0), max(ends, default=0))
    if not outcome.wrong or begin >= end:
        return None
    lanes = Lanes(0, begin, end, union(computing), union(communication), {})
    return pictures.profile([lanes], outcome.case.label)
