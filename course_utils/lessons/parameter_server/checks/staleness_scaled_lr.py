"""The check of `staleness_scaled_lr`: the rates for gradients of staleness 0, 1, 2, … and an error below 0."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, error_of, raised, same
from course_utils.lessons.parameter_server.checks import LESSON


def rates(function: Callable, rate: float, ages: list[int]) -> list:
    """The learner's rate for each of these staleness values."""
    return [function(rate, age) for age in ages]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(rate: float, ages: list[int], more: str = "") -> Case:
        wanted = [float(rate) if age == 0 else rate / age for age in ages]
        label = f"rate {rate:.3g}, staleness {', '.join(map(str, ages))}{more}; one entry each"
        return Case(label, [(rate, ages)], [wanted], with_comm=False, tolerance=1e-12, harness=rates)

    yield case(0.6, [1, 2, 3, 4])
    yield case(float(rng.uniform(0.01, 0.5)), [0, 1, 2, 10])
    yield case(float(rng.uniform(1e-5, 1e-3)), sorted(int(age) for age in rng.integers(2, 5000, 6)))
    yield case(3, [2, 0], ", a rate that is a whole number")
    for age in (-1, -int(rng.integers(2, 9))):
        yield Case(f"staleness {age}", [(0.1, age)], ["ValueError"], with_comm=False, harness=error_of)


def _gives(formula: Callable[[float, int], float]) -> Recogniser:
    """A recogniser of another formula of (rate, staleness)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        rate, ages = case.arguments[0]
        return case.harness is rates and same(outcome.results[0], [float(formula(rate, age)) for age in ages], 1e-9)

    return recognises


def _fresh(formula: Callable[[float], float]) -> Recogniser:
    """A recogniser of another rate for a fresh gradient alone."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        rate, ages = case.arguments[0]
        wrong = [formula(rate) if age == 0 else rate / age for age in ages] if case.harness is rates else []
        return 0 in ages and same(outcome.results[0], wrong, 1e-9) if wrong else False

    return recognises


def _no_rate(case: Case, outcome: Outcome) -> bool:
    return case.harness is rates and type(outcome.results[0]) is list and None in outcome.results[0]


def _from_the_future(case: Case, outcome: Outcome) -> bool:
    return case.harness is error_of


STALENESS_SCALED_LR = Exercise(
    name="staleness_scaled_lr",
    library="course_utils.lessons.parameter_server.server:staleness_scaled_lr",
    lesson=LESSON,
    place=3,
    minutes=5,
    difficulty=1,
    turn="the rate, divided by how old the gradient is",
    title="a shorter step for an older gradient",
    cases=_cases,
    picture=False,
    hints=(
        "A gradient that is 4 updates old shall move the weights a quarter as far as one that is 1 old. And one that "
        "is 0 old, by what can that be divided?",
        "Raise a `ValueError` where the staleness is below 0; else return `rate / max(1, staleness)`.",
    ),
    mistakes=(
        Mistake("Can a gradient come from the future? What does the docstring promise for it?", _from_the_future),
        Mistake(
            "What is the staleness of a fresh gradient, and can you divide by it?",
            lambda case, outcome: raised(outcome, "ZeroDivision"),
        ),
        Mistake("Do you return the rate?", _no_rate),
        Mistake("How far may a fresh gradient move the weights?", _fresh(lambda rate: 0.0)),
        Mistake("How far may a fresh gradient move the weights?", _fresh(lambda rate: math.inf)),
        Mistake("Which staleness is divided by 1, and which by 2?", _gives(lambda rate, age: rate / (1 + age))),
        Mistake(
            "Does the rate fall like 1/τ, or in another way?", _gives(lambda rate, age: rate / math.sqrt(max(1, age)))
        ),
        Mistake("Does the rate fall like 1/τ, or in another way?", _gives(lambda rate, age: rate * math.exp(-age))),
        Mistake("Does the rate fall like 1/τ, or in another way?", _gives(lambda rate, age: rate * 0.5**age)),
        Mistake(
            "Does an older gradient get a longer step, or a shorter one?", _gives(lambda rate, age: rate * max(1, age))
        ),
        Mistake("Does an older gradient get a longer step, or a shorter one?", _gives(lambda rate, age: rate * age)),
        Mistake("Is the result a whole number?", _gives(lambda rate, age: rate // max(1, age))),
        Mistake("What does the staleness change?", _gives(lambda rate, age: rate)),
    ),
    praise=lambda outcome: "rate / τ, and the whole rate for a fresh gradient; a gradient from the future is refused",
)
