"""Which part of each tensor a rank of a mesh holds: found from the numbers themselves, not from how they were cut."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.held_parts import find_block


@dataclass(frozen=True)
class MeshPart:
    """A block of neighbouring rows and columns of a tensor, which is drawn as a matrix.

    Attributes:
        rows, columns: that a rank holds.
        whole: (rows, columns) of the whole tensor.
    """

    rows: range
    columns: range
    whole: tuple[int, int]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return (len(self.rows), len(self.columns)) == self.whole


def find_part(part: torch.Tensor, whole: torch.Tensor) -> MeshPart:
    """Find where a part lies in the whole, by comparing numbers; a vector counts as a matrix of one column.

    Raises:
        CourseError: it is no block of neighbouring rows and columns of the whole.
    """
    matrix, around = (tensor.reshape(len(tensor), -1).numpy() for tensor in (part, whole))
    (high, wide), (rows, columns) = matrix.shape, around.shape
    block = find_block(matrix, around, np.array_equal)
    if block is None:
        raise CourseError(f"A part of {high} × {wide} numbers is nowhere in the whole of {rows} × {columns}.")
    return MeshPart(*block, (rows, columns))


def find_parts(
    held: Iterable[Mapping[str, torch.Tensor]], whole: Mapping[str, torch.Tensor]
) -> list[dict[str, MeshPart]]:
    """For each rank, where its part of each tensor lies in the whole, by the tensor's name."""
    return [{name: find_part(part, whole[name]) for name, part in own.items()} for own in held]


def holding_the_same(parts: Sequence[Mapping[str, MeshPart]], names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the ranks in groups: those of a group hold the same part of each of these tensors."""
    found: dict[tuple[MeshPart, ...], list[int]] = {}
    for rank, own in enumerate(parts):
        found.setdefault(tuple(own[name] for name in names), []).append(rank)
    return [tuple(group) for group in found.values()]
