"""The check of `gpipe_schedule`: for any sizes the one schedule that the docstring describes."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.pipeline.checks import common
from course_utils.lessons.pipeline.checks.common import Lines, drawing_of, schedule_cases, simulated


def by_hand(ranks: int, micro_batches: int) -> Lines:
    """Every F, then every B, in the order of the micro-batches."""
    return [[f"{rank}{kind}{index}" for kind in "FB" for index in range(micro_batches)] for rank in range(ranks)]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    drawn = [(int(rng.integers(2, 7)), int(rng.integers(2, 12))) for _ in range(4)]
    yield from schedule_cases(by_hand, [(3, 4), (4, 2), (2, 7), (1, 3), (3, 1), (1, 1), (9, 20), *drawn, (4, 8)])


def _at_once(case: Case, outcome: Outcome) -> bool:
    """Whether some backward pass comes before the rank's last forward pass."""
    kinds = ["".join("F" if "F" in text else "B" for text in own) for own in outcome.results[0]]
    return any("BF" in own for own in kinds)


def _praise(outcome: Outcome) -> str:
    ranks, micro_batches = outcome.case.arguments[0]
    timing = simulated(outcome.results[0])
    return (
        f"with {ranks} ranks and {micro_batches} micro-batches, each rank is idle {timing.idle_share:.1%} of the time "
        f"and keeps {micro_batches} micro-batches at once"
    )


EXERCISE = Exercise(
    library="schedules",
    number=1,
    minutes=5,
    difficulty=1,
    turn="for each rank every forward pass, then every backward pass",
    title="all forward, then all backward",
    cases=_cases,
    hints=(
        "Write down what rank 0 does with three micro-batches, from its first action to its last. What is different "
        "for rank 1?",
        "The list of a rank is `[Action(FORWARD, rank, index) for index in range(micro_batches)]`, followed by the "
        "same with `BACKWARD`. The function returns a list of these lists, one for each rank.",
    ),
    symptoms={
        **common.SYMPTOMS,
        "a backward pass comes before a forward pass": _at_once,
    },
    praise=_praise,
    drawing=drawing_of("GPipe", by_hand),
)
