"""Which part of each tensor a rank of a mesh holds: found from the numbers themselves, not from how they were cut."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch

from course_utils.errors import CourseError


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
    part, whole = (tensor.reshape(len(tensor), -1) for tensor in (part, whole))
    (high, wide), (rows, columns) = part.shape, whole.shape
    for top, left in product(range(rows - high + 1), range(columns - wide + 1)):
        if torch.equal(whole[top : top + high, left : left + wide], part):
            return MeshPart(range(top, top + high), range(left, left + wide), (rows, columns))
    raise CourseError(f"A part of {high} × {wide} numbers is nowhere in the whole of {rows} × {columns}.")


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
