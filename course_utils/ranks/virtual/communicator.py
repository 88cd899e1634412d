"""The communicator that a function on virtual ranks is given, and those made of it: split or copied."""

import functools
from typing import Any

from course_utils.ranks.virtual.virtual_collectives import VirtualCollectives
from course_utils.ranks.virtual.virtual_messages import VirtualMessages
from course_utils.ranks.virtual.virtual_mpi import KnownInPart
from course_utils.trace.events import Agreement
from course_utils.trace.mpi.several_requests import UNDEFINED

_LEFT_OUT = frozenset(
    ("bsend", "f2py", "free", "fromhandle", "fromint", "group", "handle", "ibsend", "improbe", "info", "is_inter")
    + ("is_intra", "is_topo", "mprobe", "name", "py2f", "toint", "topology")
)
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

    def Free(self):
        """Nothing to free."""
