"""The check of `idle_share`: on times that were counted by hand, and on drawn ones, counted tick by tick."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.profiling.checks.times import (
    HIDDEN,
    Times,
    drawn,
    drawn_lanes,
    in_seconds,
    label_of,
    moments,
    nearly_right,
    on_each_rank,
)
from course_utils.words import ranks


def by_moments(computing: Times, communication: Times, begin: int, end: int) -> float:
    """The share, counted tick by tick."""
    span = set(range(begin, end))
    return len(span - moments([*computing, *communication])) / len(span) if span else 0.0


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(computing: Times, communication: Times, begin: float, end: float, share: float, key: str = "") -> Case:
        label = f"{label_of(key, computing, communication)}, from {begin:.4g} to {end:.4g}"
        return Case(label, [(computing, communication, begin, end)], [share], with_comm=False, key=key)

    yield case([(0, 3)], [(4, 10)], 0, 10, 0.1)
    yield case([(2, 4)], [(5, 6)], 0, 10, 0.7, "gaps-at-both-ends")
    yield case([(1, 6)], [(4, 8)], 0, 10, 0.3)
    yield case([(0, 4), (2, 6)], [(7, 8)], 0, 10, 0.3)
    yield case([(0, 5), (1, 2)], [(3, 4)], 0, 8, 3 / 8, "nested")
    yield case([(0, 1)], [(2, 8), (3, 4)], 0, 10, 0.3, "nested")
    yield case([(0, 3), (3, 5)], [(5, 6)], 0, 8, 0.25)
    yield case([(6, 8), (0, 2)], [(3, 4)], 0, 10, 0.5, "unordered")
    yield case([], [(2, 4)], 0, 10, 0.8, "empty-list")
    yield case([(0, 4)], [], 0, 10, 0.6, "empty-list")
    yield case([], [], 0, 10, 1.0, "both-empty")
    yield case([(-4, 2)], [(7, 15)], 0, 10, 0.5, "reaching-beyond")
    yield case([(-9, -5), (3, 5)], [(12, 20)], 0, 10, 0.8, "reaching-beyond")
    yield case([(-5, 50)], [(20, 30)], 0, 10, 0.0, "reaching-beyond")
    yield case([(12, 14), (15, 17)], [(13, 15)], 10, 20, 0.5, "late-begin")
    yield case([(5, 5), (1, 2)], [(7, 7)], 0, 10, 0.9, "some-without-length")
    yield case([(0, 1)], [(0, 1)], 3, 3, 0.0, "no-time")
    yield case([(0, 9)], [(2, 5)], 5, 4, 0.0, "no-time")
    yield case([(0, 1)], [(2, 3)], 8, 4, 0.0, "no-time")
    given = in_seconds(rng, ([(2, 6), (5, 9)], [(8, 10)], 1, 13), 0.1)
    yield case(*given, 4 / 12, "fractions")
    given = in_seconds(rng, ([(2, 6), (7, 9)], [(10, 12)], 1, 13), 1e-6)
    yield case(*given, 4 / 12, "microseconds")
    each = [(drawn(rng, rank), drawn(rng, int(rng.integers(7))), 3, 20) for rank in range(available)]
    given, wanted = [in_seconds(rng, ticks) for ticks in each], [by_moments(*ticks) for ticks in each]
    yield Case(f"{ranks(available)}, each with times of its own", given, wanted, with_comm=False)
    for n in (3, 6, 10):
        begin = int(rng.integers(9))
        ticks = drawn(rng, n), drawn(rng, n + 1), begin, begin + 5 * n
        yield case(*in_seconds(rng, ticks), by_moments(*ticks))
    yield in_a_row(case([(0, 6)], [(2, 8)], 0, 10, 0.2), case([(1, 2)], [(4, 6)], 0, 10, 0.7))
    given = [([(3, 9), (5, 12)], [(1, 4), (11, 15)], 2, 22)]
    yield Case("times from iterators", given, [0.35], with_comm=False, harness=on_each_rank, key="iterators")


EXERCISE = Exercise(
    library="time_shares",
    number=2,
    minutes=5,
    difficulty=2,
    turn="return the share of the time from begin to end in which the rank is idle",
    title="how long is a rank idle?",
    cases=_cases,
    drawing=drawn_lanes,
    also_hidden=HIDDEN,
    hints=(
        "Put both lists into one and sort it. When you get to a pair, which part of it have you counted already, and "
        "which part lies outside the time from `begin` to `end`?",
        "Keep a variable `counted`, the moment up to which you have counted. At first that is `begin`. Cut each pair, "
        "in sorted order, so that it begins no earlier than `counted` and ends no later than `end`. If anything is "
        "left of it, add its length to the busy time and move `counted` to its end. The rest of the time is idle.",
    ),
    symptoms={"the share is nearly right": nearly_right},
    praise=lambda outcome: (
        "the shares counted by hand, gaps at both ends included, and what reaches beyond them left out"
    ),
)
