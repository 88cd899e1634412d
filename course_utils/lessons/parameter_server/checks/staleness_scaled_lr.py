"""The check of `staleness_scaled_lr`: the rates for gradients of staleness 0, 1, 2, … and an error below 0."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import rejected
from course_utils.checks.exercise import Case, Exercise


def rates(function: Callable, rate: float, ages: list[int]) -> list:
    """The learner's rate for each of these staleness values."""
    return [function(rate, age) for age in ages]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(rate: float, ages: list[int], more: str = "", key: str = "") -> Case:
        wanted = [float(rate) if age == 0 else rate / age for age in ages]
        label = f"rate {rate:.3g}, staleness {', '.join(map(str, ages))}{more}"
        calls = tuple(f"for staleness {age}" for age in ages)
        fields = {"with_comm": False, "tolerance": 1e-12, "harness": rates, "key": key, "calls": calls}
        return Case(label, [(rate, ages)], [wanted], **fields)

    yield case(0.6, [1, 2, 3, 4])
    yield case(float(rng.uniform(0.01, 0.5)), rng.permutation([0, 1, 2, 10]).tolist())
    yield case(float(rng.uniform(1e-5, 1e-3)), [5, *rng.integers(2, 5000, 6).tolist(), 0, 5, 10**7])
    yield case(float(rng.uniform(1.5, 9)), [7, 0, 1])
    yield case(3, [2, 0], ", a rate that is a whole number")
    yield case(0.0, [4, 0], ", the first rate of a warm-up", key="rate-0")
    for age in (-1, -int(rng.integers(2, 9))):
        yield rejected(f"staleness {age}", (0.1, age), "ValueError")


EXERCISE = Exercise(
    library="server",
    number=3,
    minutes=5,
    difficulty=1,
    turn="divide the rate by the staleness of the gradient",
    title="a smaller rate for an older gradient",
    cases=_cases,
    hints=(
        "A gradient with staleness 4 should move the weights a quarter as far as one with staleness 1. What can you "
        "divide by if the staleness is 0?",
        "If the staleness is below 0, raise a `ValueError`. Otherwise return `rate / max(1, staleness)`.",
    ),
    praise=lambda outcome: "rate / τ, the full rate for a fresh gradient, and an error for a staleness below 0",
)
