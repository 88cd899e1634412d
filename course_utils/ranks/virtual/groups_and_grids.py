"""Groups of virtual ranks, and communicators whose ranks are numbered as the places of a grid."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from course_utils.ranks.virtual.virtual_mpi import PROC_NULL, KnownInPart, MPIException
from course_utils.trace.mpi.several_requests import UNDEFINED


class VirtualGroup(KnownInPart):
    """Some ranks of a run, in an order of their own.

    Attributes:
        members: for each rank of the group, its number in the run.
        rank: of the rank that asks, in the group; UNDEFINED if it is not in it.
    """

    called = "MPI.Group"

    def __init__(self, members: Iterable[int], me: int) -> None:
        self.members, self._me = list(members), me
        self.rank = self.members.index(me) if me in self.members else UNDEFINED

    @property
    def size(self) -> int:
        return len(self.members)

    def Get_size(self) -> int:
        return self.size

    def Get_rank(self) -> int:
        return self.rank

    def _of(self, members: Iterable[int]) -> "VirtualGroup":
        return VirtualGroup(members, self._me)

    def Incl(self, ranks: Sequence[int]) -> "VirtualGroup":
        return self._of(self.members[rank] for rank in ranks)

    def Excl(self, ranks: Sequence[int]) -> "VirtualGroup":
        return self._of(member for rank, member in enumerate(self.members) if rank not in set(ranks))

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> "VirtualGroup":
        each = (range(first, last + (1 if step > 0 else -1), step) for first, last, step in ranks)
        return self.Incl([rank for several in each for rank in several])

    @classmethod
    def Union(cls, group1: "VirtualGroup", group2: "VirtualGroup") -> "VirtualGroup":
        return group1._of([*group1.members, *(member for member in group2.members if member not in group1.members)])

    @classmethod
    def Intersection(cls, group1: "VirtualGroup", group2: "VirtualGroup") -> "VirtualGroup":
        return group1._of(member for member in group1.members if member in group2.members)

    @classmethod
    def Difference(cls, group1: "VirtualGroup", group2: "VirtualGroup") -> "VirtualGroup":
        return group1._of(member for member in group1.members if member not in group2.members)

    def Translate_ranks(self, ranks: Sequence[int] | None = None, group: "VirtualGroup | None" = None) -> list[int]:
        wanted = range(self.size) if ranks is None else ranks
        others = self.members if group is None else group.members
        found = [self.members[rank] for rank in wanted]
        return [others.index(member) if member in others else UNDEFINED for member in found]

    def Free(self) -> None:
        """Nothing to free."""

    free = Free


class PlacesOfGrid:
    """Mixed into a communicator: its ranks are the places of a grid, the last direction counting fastest.

    Attributes:
        dims: the places in each direction.
        periods: in which directions the last place is a neighbour of the first.
    """

    rank: int
    dims: list[int]
    periods: list[int]

    @property
    def ndim(self) -> int:
        return len(self.dims)

    dim = ndim

    @property
    def coords(self) -> list[int]:
        return self.Get_coords(self.rank)

    @property
    def topo(self) -> tuple[list[int], list[int], list[int]]:
        return self.Get_topo()

    def Get_dim(self) -> int:
        return self.ndim

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        return self.dims, self.periods, self.coords

    def Get_coords(self, rank: int) -> list[int]:
        coords: list[int] = []
        for size in reversed(self.dims):
            coords.insert(0, rank % size)
            rank //= size
        return coords

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        rank = 0
        for place, size, is_ring in zip(coords, self.dims, self.periods, strict=True):
            if not is_ring and not 0 <= place < size:
                raise MPIException(f"Get_cart_rank: Invalid argument, the grid has no place {list(coords)}")
            rank = rank * size + place % size
        return rank

    def _neighbour(self, direction: int, distance: int) -> int:
        place = self.coords
        place[direction] += distance
        is_outside = not self.periods[direction] and not 0 <= place[direction] < self.dims[direction]
        return PROC_NULL if is_outside else self.Get_cart_rank(place)

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        if not 0 <= direction < self.ndim:
            raise MPIException(f"Shift: Invalid argument, the grid has no direction {direction}")
        return self._neighbour(direction, -disp), self._neighbour(direction, disp)


def compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """`MPI.Compute_dims`: so many places as a grid that is as square as can be, the longest side first.

    Args:
        nnodes: the number of places.
        dims: of how many directions; or the sides, with 0 for those to be found.
    """
    sides = [0] * dims if isinstance(dims, int) else list(dims)
    left, unknown = nnodes // math.prod(side for side in sides if side), [i for i, side in enumerate(sides) if not side]
    for number, index in enumerate(unknown):
        directions = len(unknown) - number
        enough = (side for side in range(1, left + 1) if left % side == 0 and side**directions >= left)
        sides[index] = next(enough, left)
        left //= sides[index]
    return sides


def grid_of(communicator: Any, dims: Sequence[int], periods: Sequence[bool] | bool | None) -> Any:
    """Give a communicator its grid, and give it back."""
    communicator.dims = [int(side) for side in dims]
    each = [bool(periods)] * len(dims) if periods is None or isinstance(periods, (bool, int)) else periods
    communicator.periods = [int(bool(is_ring)) for is_ring in each]
    return communicator
