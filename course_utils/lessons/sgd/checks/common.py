"""What the checks of lesson 1 share: the stem, steps taken in place, and formulas that a wrong step follows."""

from collections.abc import Sequence

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Outcome

Shapes = Sequence[tuple[int, ...]]


def arrays(rng: np.random.Generator, shapes: Shapes, dtype: str = "float64") -> list[np.ndarray]:
    """One array of each shape, its numbers drawn afresh."""
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def every_second_row(array: np.ndarray) -> np.ndarray:
    """A view with these numbers that does not lie in one piece in memory."""
    return np.repeat(array, 2, axis=0)[::2]


def part(outcome: Outcome, name: str) -> object:
    """One entry of the dict that a harness of this lesson returns."""
    result = outcome.results[0]
    return NO_RESULT if result is NO_RESULT else result[name]
