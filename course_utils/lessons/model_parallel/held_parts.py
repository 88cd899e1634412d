"""Which part of a matrix each rank holds, found by comparing its numbers with those of the whole matrix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from course_utils.errors import CourseError

if TYPE_CHECKING:
    import torch

Stretch = tuple[float, float]
"""From where to where along a dimension, as shares of its length."""


@dataclass(frozen=True)
class HeldPart:
    """What one rank holds of a matrix.

    Attributes:
        shape: of the part.
        rows, columns: where it is in the whole matrix.
        is_term: whether its numbers are one term of a sum over ranks. Otherwise they are those of the whole matrix.
    """

    shape: tuple[int, int]
    rows: Stretch
    columns: Stretch
    is_term: bool = False


@dataclass(frozen=True)
class HeldMatrix:
    """What all ranks hold of one matrix.

    Attributes:
        name: of the matrix.
        parts: one for each rank.
    """

    name: str
    parts: tuple[HeldPart, ...]

    @property
    def is_everywhere(self) -> bool:
        """Whether all ranks hold the whole matrix."""
        return all(part.rows == part.columns == (0, 1) and not part.is_term for part in self.parts)


def find_part(part: np.ndarray, whole: np.ndarray) -> HeldPart:
    """Find where a rank's part is in the whole matrix.

    A part that is nowhere in it, although it has the same shape, is a term of a sum.

    Raises:
        CourseError: no matrices, or a part of another shape that is nowhere in the whole one.
    """
    if part.ndim != 2 or whole.ndim != 2:
        raise CourseError(f"A part has {part.ndim} dimensions and the whole has {whole.ndim}. Give two matrices.")
    (high, wide), (rows, columns) = part.shape, whole.shape
    block = find_block(part, whole, lambda numbers, others: np.allclose(numbers, others, atol=1e-4))
    if block:
        top, left = (stretch.start for stretch in block)
        return HeldPart((high, wide), (top / rows, (top + high) / rows), (left / columns, (left + wide) / columns))
    if part.shape != whole.shape:
        raise CourseError(f"A part of shape {part.shape} is nowhere in the matrix of shape {whole.shape}.")
    return HeldPart((high, wide), (0, 1), (0, 1), is_term=True)


def find_block(
    part: np.ndarray, whole: np.ndarray, agree: Callable[[np.ndarray, np.ndarray], bool]
) -> tuple[range, range] | None:
    """Return the rows and columns of the first block of a matrix that agrees with a part; None if there is none."""
    (high, wide), (rows, columns) = part.shape, whole.shape
    for top, left in product(range(rows - high + 1), range(columns - wide + 1)):
        if agree(part, whole[top : top + high, left : left + wide]):
            return range(top, top + high), range(left, left + wide)
    return None


def held_matrices(
    results: Sequence[Mapping[str, "torch.Tensor"]], whole: Mapping[str, "torch.Tensor"]
) -> tuple[HeldMatrix, ...]:
    """Find what the ranks hold of each matrix.

    Args:
        results: for each rank the matrices that it holds, by name.
        whole: the whole matrices, with the same names.
    """
    return tuple(
        HeldMatrix(name, tuple(find_part(result[name].detach().numpy(), matrix.detach().numpy()) for result in results))
        for name, matrix in ((name, whole[name]) for name in results[0])
    )
