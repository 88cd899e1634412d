"""The check of `bubble_fraction`: the formula against what a simulated schedule is idle."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.words import count


def by_hand(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Compute the share from the P − 1 passes that a rank waits for, each of 1/v of its length, and its m own ones."""
    waits = (ranks - 1) / chunks
    return waits / (micro_batches + waits)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(*sizes: int) -> Case:
        ranks, micro_batches, *chunks = sizes
        label = f"{count(ranks, 'rank')}, {count(micro_batches, 'micro-batch')}"
        label += f", {count(chunks[0], 'chunk')} on each rank" if chunks else ""
        return Case(label, [sizes], [float(by_hand(*sizes))], with_comm=False)

    yield case(4, 8)
    yield case(4, 4)
    yield case(4, 8, 1)
    yield case(8, 1)
    yield case(1, 5)
    yield case(2, 1)
    yield case(50, 1)
    for _ in range(3):
        yield case(int(rng.integers(3, 60)), int(rng.integers(2, 400)))
    yield case(4, 8, 2)
    yield case(1, 3, 4)
    yield case(6, 8, 4)
    yield in_a_row(case(4, 8, 2), case(6, 8, 2))
    yield in_a_row(case(4, 8, 2), case(4, 8))
    for _ in range(3):
        yield case(int(rng.integers(3, 40)), int(rng.integers(2, 200)), int(rng.integers(3, 9)))
    yield case(3, 6)


def _praise(outcome: Outcome) -> str:
    ranks, micro_batches = outcome.case.arguments[0]
    idle = _simulated(ranks, micro_batches)
    return (
        f"your formula gives {outcome.results[0]:.3f} for {ranks} ranks and {micro_batches} micro-batches, and in a "
        f"simulation the ranks are idle for {idle:.3f} of the time"
    )


def _simulated(ranks: int, micro_batches: int) -> float:
    return simulate_schedule(one_f_one_b_schedule(ranks, micro_batches)).idle_share


EXERCISE = Exercise(
    library="schedules",
    number=3,
    minutes=5,
    difficulty=1,
    turn="the idle share of a rank, from P, m and v",
    title="how large is the bubble?",
    cases=_cases,
    hints=(
        "Draw GPipe for 3 ranks and 4 micro-batches, and count in passes. How many does rank 2 do, and how many does "
        "it wait for? If a pass through a chunk takes only 1/v of the time, which of the two times changes?",
        "Each rank works for m passes and waits for (P − 1) / v of them. So the idle share is "
        "(P − 1) / v divided by m + (P − 1) / v, which is (P − 1) / (v m + P − 1).",
    ),
    praise=_praise,
)
