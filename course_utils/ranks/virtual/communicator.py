"""The communicator that a function on virtual ranks is given, and those made of it: split or copied."""

import functools
import math
from collections.abc import Sequence
from typing import Any

from course_utils.ranks.virtual.groups_and_grids import PlacesOfGrid, VirtualGroup, grid_of
from course_utils.ranks.virtual.virtual_collectives import VirtualCollectives
from course_utils.ranks.virtual.virtual_messages import VirtualMessages
from course_utils.ranks.virtual.virtual_mpi import KnownInPart, MPIException
from course_utils.ranks.virtual.virtual_requests import Request
from course_utils.trace.events import Agreement
from course_utils.trace.mpi.several_requests import UNDEFINED

_LEFT_OUT = frozenset(("f2py", "fromhandle", "fromint", "handle", "info", "py2f", "toint", "topology"))
"""The names in small letters that mpi4py's communicators have and virtual ones have not."""


class VirtualComm(VirtualMessages, VirtualCollectives, KnownInPart):
    """A communicator on one virtual rank: mpi4py's names for what the course uses, on the scheduler's messages."""

    called = "comm"
    left_out = _LEFT_OUT

    def __init__(self, inner: "VirtualComm | None" = None, world_ranks: Any = None, label: str | None = None) -> None:
        """A communicator with the messages of another."""
        if inner is not None:
            self._initialise(inner.scheduler, inner.me, inner.world_ranks, inner.label)

    @functools.cached_property
    def inner(self) -> "VirtualComm":
        """The same communicator, on which nothing is recorded."""
        comm = VirtualComm(self)
        comm.traced = comm._records = False
        return comm

    # --- new communicators ------------------------------------------------------------------------------------------

    def _gather_contributions(self, name: str, part: Any) -> tuple[list, int]:
        """What all ranks said, and which collective this was; a new communicator costs what a barrier does."""
        collective = self._enter(Agreement(name), part, ("barrier", 0))
        self.scheduler.wait_for_collective(self.me, collective, name)
        return collective.shared(list), collective.need.number

    def Split(self, color=0, key=0):
        contributions, number = self._gather_contributions("Split", (color, key))
        if color in (None, UNDEFINED):
            return None
        mine = sorted((other_key, rank) for rank, (other, other_key) in enumerate(contributions) if other == color)
        ranks = [self.world_ranks[rank] for _, rank in mine]
        return VirtualComm.on(self.scheduler, self.me, ranks, f"{self.label}/{number}/{min(ranks)}")

    def Dup(self):
        _, number = self._gather_contributions("Dup", None)
        return VirtualComm.on(self.scheduler, self.me, self.world_ranks, f"{self.label}/{number}/{self.world_ranks[0]}")

    Clone = Dup

    def Split_type(self, split_type=0, key=0, info=None):
        return self.Split(0, key)

    def Idup(self):
        """A copy at once, with a request that is done."""
        copy = self.Dup()
        request = Request(self, "Idup", None, None)
        return copy, request

    def Free(self):
        """Nothing to free."""

    free = Free

    def Get_group(self):
        return VirtualGroup(self.world_ranks, self.me.number)

    group = property(Get_group)

    def Create(self, group):
        members = group.members
        self._gather_contributions("Create", None)
        return self._of_group(members, "created")

    def Create_group(self, group, tag=0):
        return self._of_group(group.members, f"group {tag}")

    def _of_group(self, members: list[int], what: str):
        if self.me.number not in members:
            return None
        label = f"{self.label}/{what} {'-'.join(map(str, members))}"
        return VirtualComm.on(self.scheduler, self.me, members, label).Dup()

    # --- grids ------------------------------------------------------------------------------------------------------

    def _grid(self, color: int | None, dims: Sequence[int], periods: Any, name: str):
        contributions, number = self._gather_contributions(name, color)
        if color is None:
            return None
        ranks = [self.world_ranks[rank] for rank, other in enumerate(contributions) if other == color]
        grid = VirtualGrid.on(self.scheduler, self.me, ranks, f"{self.label}/{number}/{min(ranks)}")
        return grid_of(grid, dims, periods)

    def Create_cart(self, dims, periods=None, reorder=False):
        sides = [dims] if isinstance(dims, int) else list(dims)
        if math.prod(sides) > self.size:
            raise MPIException(f"Create_cart: Size of the communicator ({self.size}) is smaller than the grid")
        return self._grid(0 if self.rank < math.prod(sides) else None, sides, periods, "Create_cart")

    # --- what it is -------------------------------------------------------------------------------------------------

    is_intra, is_inter, is_topo = True, False, False

    @property
    def name(self):
        return self.label

    @name.setter
    def name(self, name):
        """A name is for people, and nothing here depends on it."""

    def Set_name(self, name):
        """A name is for people, and nothing here depends on it."""

    def Is_intra(self):
        return True

    def Is_inter(self):
        return False


class VirtualGrid(PlacesOfGrid, VirtualComm):
    """A communicator whose ranks are the places of a grid."""

    called = "comm"
    is_topo = True

    def Sub(self, remain_dims):
        sides = zip(self.dims, self.periods, remain_dims, strict=True)
        kept = [(side, is_ring) for side, is_ring, keep in sides if keep]
        dropped = [place for place, keep in zip(self.coords, remain_dims, strict=True) if not keep]
        sizes = [side for side, keep in zip(self.dims, remain_dims, strict=True) if not keep]
        color = 0
        for place, size in zip(dropped, sizes, strict=True):
            color = color * size + place
        return self._grid(color, [side for side, _ in kept], [is_ring for _, is_ring in kept], "Sub")
