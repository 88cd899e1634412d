"""The communicator that a function on virtual ranks is given, and those made of it: split, copied, or on a grid."""

import functools
from typing import Any

import numpy as np

from course_utils.ranks.virtual.stand_in import PROC_NULL
from course_utils.ranks.virtual.virtual_collectives import VirtualCollectives
from course_utils.ranks.virtual.virtual_messages import VirtualMessages
from course_utils.trace.events import Agreement
from course_utils.trace.several_requests import UNDEFINED


class VirtualComm(VirtualMessages, VirtualCollectives):
    """A communicator on one virtual rank: mpi4py's names for what the course uses, on the scheduler's messages."""

    def __init__(self, inner: "VirtualComm | None" = None, world_ranks: Any = None, label: str | None = None) -> None:
        """A communicator with the messages of another."""
        if inner is not None:
            self._sit(inner.scheduler, inner.me, inner.world_ranks, inner.label)

    @functools.cached_property
    def inner(self) -> "VirtualComm":
        """The same communicator, on which nothing is recorded."""
        comm = VirtualComm(self)
        comm.traced = comm._records = False
        return comm

    # --- new communicators ------------------------------------------------------------------------------------------

    def _meet(self, name: str, part: Any) -> tuple[list, int]:
        """What all ranks said, and which collective this was; a new communicator costs what a barrier does."""
        gathering = self._come(Agreement(name), part, ("barrier", 0))
        self.scheduler.join(self.me, gathering, name)
        return gathering.shared(list), gathering.meeting.number

    def Split(self, color=0, key=0):
        said, number = self._meet("Split", (color, key))
        if color in (None, UNDEFINED):
            return None
        mine = sorted((other_key, rank) for rank, (other, other_key) in enumerate(said) if other == color)
        ranks = [self.world_ranks[rank] for _, rank in mine]
        return VirtualComm.on(self.scheduler, self.me, ranks, f"{self.label}/{number}/{min(ranks)}")

    def Dup(self):
        _, number = self._meet("Dup", None)
        return VirtualComm.on(self.scheduler, self.me, self.world_ranks, f"{self.label}/{number}/{self.world_ranks[0]}")

    Clone = Dup

    def Split_type(self, split_type=0, key=0, info=None):
        return self.Split(0, key)

    def Create_cart(self, dims, periods=None, reorder=False):
        _, number = self._meet("Create_cart", tuple(dims))
        size = int(np.prod(dims))
        if self.rank >= size:
            return None
        comm = VirtualCart.on(self.scheduler, self.me, self.world_ranks[:size], f"{self.label}/{number}/cart")
        periods = list(periods) if periods is not None else [False] * len(dims)
        comm.dims, comm.periods = [int(extent) for extent in dims], [bool(period) for period in periods]
        return comm

    def Free(self):
        """Nothing to free."""


class VirtualCart(VirtualComm):
    """Ranks on a grid, the last dimension counted fastest."""

    dims: list[int]
    periods: list[bool]

    @property
    def coords(self) -> list[int]:
        """Where this rank is."""
        return self.Get_coords(self.rank)

    ndim = property(lambda self: len(self.dims))
    dim = ndim

    def Get_coords(self, rank):
        return [int(place) for place in np.unravel_index(rank, self.dims)]

    def Get_topo(self):
        return self.dims, self.periods, self.coords

    topo = property(Get_topo)

    def Get_cart_rank(self, coords):
        wrapped = []
        for place, extent, period in zip(coords, self.dims, self.periods):
            if not period and not 0 <= place < extent:
                raise ValueError(f"Get_cart_rank: {place} is outside 0 to {extent - 1}")
            wrapped.append(place % extent)
        return int(np.ravel_multi_index(wrapped, self.dims))

    def Shift(self, direction, disp):
        def at(step: int) -> int:
            coords = self.coords
            coords[direction] += step
            inside = self.periods[direction] or 0 <= coords[direction] < self.dims[direction]
            return self.Get_cart_rank(coords) if inside else PROC_NULL

        return at(-disp), at(disp)

    def Sub(self, remain_dims):
        keep = [bool(remain) for remain in remain_dims]
        coords = self.coords
        left_out = [place for place, remain in zip(coords, keep) if not remain]
        color = int(np.ravel_multi_index(left_out, [d for d, r in zip(self.dims, keep) if not r])) if left_out else 0
        sub = self.Split(color, self.rank)
        comm = VirtualCart.on(self.scheduler, self.me, sub.world_ranks, f"{sub.label}/sub")
        comm.dims = [extent for extent, remain in zip(self.dims, keep) if remain]
        comm.periods = [period for period, remain in zip(self.periods, keep) if remain]
        return comm
