"""What the checks of lesson 2 share. torch is imported where it is used: a list of exercises must not wait for it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks import recognisers
from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.recognisers import Recogniser


def same(got: Any, wanted: Any, tolerance: float | None = 1e-4) -> bool:
    """Whether two results are equal; never asks a learner's object."""
    return recognisers.same(got, wanted, tolerance)


def changed(*places: int) -> Recogniser:
    """A recogniser of arguments, at these places, that hold other numbers after the call."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        before, after = case.arguments[0], outcome.arguments[0]
        return outcome.run is not None and not all(same(after[place], before[place], 0.0) for place in places)

    return recognises


def gives(formula: Callable[..., Any]) -> Recogniser:
    """A recogniser of what another formula of the same arguments gives, in the dtype that was asked for."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        with np.errstate(all="ignore"):
            wanted = as_expected(formula(*case.arguments[0]), case.expected[0])
        return same(outcome.results[0], wanted)

    return recognises


def as_expected(found: Any, expected: Any) -> Any:
    """Arrays in the dtypes of those that were expected."""
    if isinstance(expected, (tuple, list)):
        return tuple(as_expected(one, other) for one, other in zip(found, expected, strict=True))
    return np.asarray(found, dtype=expected.dtype)
