"""The check of `overlap_share`: on times that were counted by hand, and on drawn ones, counted tick by tick."""

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


def by_moments(computing: Times, communication: Times) -> float:
    """The share, counted tick by tick."""
    sent, busy = moments(communication), moments(computing)
    return len(sent & busy) / len(sent) if sent else 0.0


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(computing: Times, communication: Times, share: float, key: str = "") -> Case:
        label = label_of(key, computing, communication)
        return Case(label, [(computing, communication)], [share], with_comm=False, key=key)

    yield case([(0, 5)], [(3, 13)], 0.2)
    yield case([(0, 3), (4, 6)], [(1, 7)], 4 / 6, "two-beside-a-message")
    yield case([(0, 2), (3, 5)], [(1, 4), (6, 8)], 2 / 5)
    yield case([(0, 7)], [(2, 6), (4, 8)], 5 / 6)
    yield case([(0, 4), (2, 6)], [(1, 9)], 5 / 8)
    yield case([(0, 4), (2, 6)], [(1, 5), (3, 9)], 5 / 8)
    yield case([(0, 7), (1, 2)], [(3, 9)], 4 / 6, "nested")
    yield case([(4, 9)], [(0, 6), (1, 2), (3, 5)], 2 / 6, "nested")
    yield case([(0, 2), (2, 4)], [(1, 3), (3, 5)], 0.75)
    yield case([(8, 9), (0, 3)], [(6, 8), (2, 4)], 0.25, "unordered")
    yield case([(0, 3)], [(5, 9)], 0.0)
    yield case([], [(0, 3)], 0.0, "nothing-computed")
    yield case([(0, 3)], [], 0.0, "nothing-under-way")
    yield case([(0, 3)], [(1, 1), (2, 2)], 0.0, "nothing-under-way")
    yield case([], [], 0.0, "nothing-under-way")
    yield case([(1, 1), (0, 3), (2, 2)], [(2, 2), (1, 5), (4, 4)], 0.5, "some-without-length")
    yield case([(-6, -2), (-1, 1)], [(-4, 2)], 4 / 6, "negative-times")
    given = in_seconds(rng, ([(0, 4), (7, 9)], [(2, 8)]), 0.1)
    yield case(*given, 0.5, "fractions")
    given = in_seconds(rng, ([(0, 2), (3, 7)], [(2, 3), (5, 10)]), 1e-6)
    yield case(*given, 1 / 3, "microseconds")
    yield case([(0, 100)], [(98, 99), (10, 90), (20, 30), (95, 105)], 85 / 90)
    each = [
        (drawn(rng, n), drawn(rng, m)) for n, m in zip(rng.integers(0, 9, available), range(available), strict=True)
    ]
    given, wanted = [in_seconds(rng, ticks) for ticks in each], [by_moments(*ticks) for ticks in each]
    yield Case(f"{ranks(available)}, each with times of its own", given, wanted, with_comm=False)
    for n in (3, 8, 15):
        ticks = drawn(rng, n), drawn(rng, n + 2)
        yield case(*in_seconds(rng, ticks), by_moments(*ticks))
    yield in_a_row(case([(0, 4)], [(2, 6)], 0.5), case([(1, 2)], [(0, 4)], 0.25))
    given = [([(0, 4), (6, 9)], [(2, 7)])]
    yield Case("times from iterators", given, [0.6], with_comm=False, harness=on_each_rank, key="iterators")


EXERCISE = Exercise(
    library="time_shares",
    number=1,
    minutes=10,
    difficulty=2,
    turn="return the share of the communication time in which the rank computes",
    title="how much communication is hidden?",
    cases=_cases,
    drawing=drawn_lanes,
    also_hidden=HIDDEN,
    hints=(
        "Go through the time from left to right. At which moments does something change? What do you need to know "
        "between two such moments in order to say whether the time counts?",
        "Make a list of changes, (begin, +1, which of the two lists) and (end, -1, which). Go through it in order of "
        "time, and keep count of how many computations and how many messages there are at this moment. The time up to "
        "the next change is communication if there is at least one message. It is hidden if there is also at least one "
        "computation.",
    ),
    symptoms={"the share is nearly right": nearly_right},
    praise=lambda outcome: "the shares counted by hand, for times that overlap, touch, are empty or in no order",
)
