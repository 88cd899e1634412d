"""The check of `one_f_one_b_schedule`: for any sizes the one schedule that the docstring describes."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.pipeline.checks import common
from course_utils.lessons.pipeline.checks.common import Lines, drawing_of, schedule_cases, schedule_of, simulated
from course_utils.lessons.pipeline.validate import peak_in_flight


def by_hand(ranks: int, micro_batches: int) -> Lines:
    """Forward passes as far ahead of the backward ones as the rank is from the end."""
    lines = []
    for rank in range(ranks):
        left = {"F": list(range(micro_batches)), "B": list(range(micro_batches))}
        own = []
        while left["B"]:
            kept = len(left["B"]) - len(left["F"])
            kind = "F" if left["F"] and kept < ranks - rank else "B"
            own.append(f"{rank}{kind}{left[kind].pop(0)}")
        lines.append(own)
    return lines


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    drawn = [(int(rng.integers(2, 7)), int(rng.integers(1, 12))) for _ in range(5)]
    fixed = [(3, 5), (2, 3), (4, 4), (1, 3), (4, 2), (3, 1), (5, 3), (9, 20)]
    yield from schedule_cases(by_hand, [*fixed, *drawn, (4, 8)])


def _aheads(lines: Lines) -> list[int]:
    """For each rank, how many forward passes come before its first backward pass."""
    return [next((position for position, text in enumerate(own) if "B" in text), len(own)) for own in lines]


def _all_forward_first(case: Case, outcome: Outcome) -> bool:
    ranks, micro_batches = case.arguments[0]
    return micro_batches > ranks and _aheads(outcome.results[0]) == [micro_batches] * ranks


def _all_alike(case: Case, outcome: Outcome) -> bool:
    aheads = _aheads(outcome.results[0])
    return len(aheads) > 1 and len(set(aheads)) == 1


def _turned_round(case: Case, outcome: Outcome) -> bool:
    aheads = _aheads(outcome.results[0])
    return len(aheads) > 1 and aheads[0] < aheads[-1]


def _another_number(case: Case, outcome: Outcome) -> bool:
    ranks, micro_batches = case.arguments[0]
    return _aheads(outcome.results[0]) != _aheads(by_hand(ranks, micro_batches))


def _praise(outcome: Outcome) -> str:
    ranks, micro_batches = outcome.case.arguments[0]
    kept = ", ".join(f"{most:g}" for most in peak_in_flight(schedule_of(outcome.results[0])))
    idle = simulated(outcome.results[0]).idle_share
    return (
        f"with {ranks} ranks and {micro_batches} micro-batches, each rank is idle {idle:.1%} of the time, as with "
        f"GPipe; the ranks keep {kept} micro-batches, and with GPipe {micro_batches} each"
    )


EXERCISE = Exercise(
    library="schedules",
    number=2,
    minutes=10,
    difficulty=2,
    turn="a few forward passes, then one forward and one backward in turn",
    title="one forward, one backward",
    cases=_cases,
    hints=(
        "How many ranks come after rank r? That is the number of forward passes with which it begins, unless there "
        "are fewer micro-batches. Which micro-batch does it take forward next, and which one backward? What is left "
        "to do when there are no more forward passes?",
        "Begin with `ahead = min(ranks - rank - 1, micro_batches)` forward passes. Then, for each index from 0 to "
        "m − 1, add the forward pass of micro-batch `ahead + index`, if there is one, and the backward pass of "
        "micro-batch `index`.",
    ),
    symptoms={
        **common.SYMPTOMS,
        "all forward passes come first": _all_forward_first,
        "all ranks begin with as many": _all_alike,
        "the first rank begins with the fewest": _turned_round,
        "another number of forward passes comes first": _another_number,
    },
    praise=_praise,
    drawing=drawing_of("1F1B", by_hand),
    also_hidden=(
        "course_utils.lessons.pipeline.interleaved:interleaved_schedule",
        "course_utils.lessons.pipeline.zero_bubble:_put_off",
    ),
)
