"""Communicators that record what they do and never block for good: MPI's with every wait polled.

Code written for mpi4py runs on them unchanged. A blocking call of MPI cannot be interrupted, so each is made of its
nonblocking form and a loop that tests it: a rank that waits can say so, and can be asked to stop.
"""

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from course_utils.trace.books import WORLD
from course_utils.trace.collectives import Collectives
from course_utils.trace.in_thread import InThread
from course_utils.trace.recorder import here, recorder
from course_utils.trace.traced_messages import PointToPoint

_STILL = "Abort", "Attach_", "Call_errhandler", "Compare", "Delete_", "Detach_", "Free", "Get_", "Is_", "Set_", "Shift"
_STILL += "free", "py2f", "toint"
"""How the names of calls begin that move nothing between ranks."""


def knows_what_it_misses(owner: type) -> type:
    """A class whose inherited calls, which are not recorded, say so in the books."""
    plain = next(base for base in owner.__mro__ if base.__module__.startswith("mpi4py"))
    ours = {name for base in owner.__mro__[: owner.__mro__.index(plain)] for name in vars(base)}
    for name in set(dir(plain)) - ours:
        call = getattr(plain, name)
        if inspect.isroutine(call) and not inspect.ismethod(call) and not name.startswith(("_", *_STILL)):
            setattr(owner, name, _unrecorded(call))
    return owner


def _unrecorded(call: Callable) -> Callable:
    @functools.wraps(call)
    def unrecorded(*args: Any, **kwargs: Any) -> Any:
        recorder.books.complete = False
        return call(*args, **kwargs)

    return unrecorded


def in_the_run(group: MPI.Group) -> list[int]:
    """A group's ranks, as they are numbered in the run."""
    return [int(rank) for rank in group.Translate_ranks(None, MPI.COMM_WORLD.Get_group())]


@knows_what_it_misses
class TracedComm(PointToPoint, Collectives, MPI.Intracomm):
    """A communicator of one group: messages, collectives, and the making of new communicators.

    Attributes:
        inner: the plain communicator that carries the messages. It can be exchanged for a fresh one, so that messages
            left over from an interrupted run never reach the next.
    """

    def __new__(cls, inner: MPI.Intracomm, world_ranks: list[int] | None = None, label: str = WORLD) -> "TracedComm":
        comm = MPI.Intracomm.__new__(cls, inner)
        comm.label = label
        comm.world_ranks = comm.members = world_ranks or list(range(inner.size))
        comm.renew(inner)
        return comm

    def renew(self, inner: MPI.Intracomm) -> None:
        """Carry messages over `inner` from now on; forget receives that were never completed."""
        self.inner = inner
        self.posted = []

    # --- new communicators, made by all ranks of this one -----------------------------------------------------------

    def _made(self, call: str, make: Callable[[], MPI.Intracomm]) -> MPI.Intracomm:
        """With a name on which all its ranks agree."""
        self.meet(call)
        name = self.inner.bcast(f"{self.label}/{time.time_ns()}")
        return self._traced(make(), name)

    def _traced(self, comm: MPI.Intracomm, name: str) -> MPI.Intracomm:
        if comm == MPI.COMM_NULL:
            return comm
        ranks = self._ranks_of(comm.Get_group())
        kind = TracedCartcomm if isinstance(comm, MPI.Cartcomm) else TracedComm
        return kind(comm, ranks, f"{name}/{min(ranks)}")

    def _ranks_of(self, group: MPI.Group) -> list[int]:
        """A group's ranks, numbered as in the run."""
        return [self.world_ranks[place] for place in group.Translate_ranks(None, self.Get_group())]

    def Dup(self, info=None):
        return self._made("Dup", self.inner.Dup)

    def Clone(self):
        return self.Dup()

    def Split(self, color=0, key=0):
        return self._made("Split", lambda: self.inner.Split(color, key))

    def Split_type(self, split_type, key=0, info=MPI.INFO_NULL):
        return self._made("Split_type", lambda: self.inner.Split_type(split_type, key, info))

    def Create(self, group):
        return self._made("Create", lambda: self.inner.Create(group))

    def Create_cart(self, dims, periods=None, reorder=False):
        return self._made("Create_cart", lambda: self.inner.Create_cart(dims, periods, reorder))

    # --- made by some of its ranks ----------------------------------------------------------------------------------

    def _in_thread(self, call: str, make: Callable[[], MPI.Comm], need: Any = None) -> MPI.Comm:
        making = InThread(make)
        recorder.wait(making.is_completed, call, here()[1], need)
        return making.wait()

    def Create_group(self, group, tag=0):
        ranks = self._ranks_of(group)
        need = recorder.books.meet(f"{self.label}/group {ranks} {tag}", ranks, "Create_group")
        comm = self._in_thread("Create_group", lambda: self.inner.Create_group(group, tag), need)
        return self._traced(comm, comm.bcast(f"{self.label}/{time.time_ns()}"))

    def Create_intercomm(self, local_leader, peer_comm, remote_leader, tag=0):
        self.meet("Create_intercomm")
        peer = getattr(peer_comm, "inner", peer_comm)
        make = functools.partial(self.inner.Create_intercomm, local_leader, peer, remote_leader, tag)
        comm = self._in_thread("Create_intercomm", make)
        mine = self.inner.bcast(time.time_ns())
        return TracedIntercomm(
            comm, self._ranks_of(comm.Get_group()), f"{WORLD}/{sorted({mine, comm.allgather(mine)[0]})}"
        )


@knows_what_it_misses
class TracedCartcomm(TracedComm, MPI.Cartcomm):
    """Ranks on a grid."""

    def Sub(self, remain_dims):
        return self._made("Sub", lambda: self.inner.Sub(remain_dims))


@knows_what_it_misses
class TracedIntercomm(PointToPoint, MPI.Intercomm):
    """Two groups; messages go to ranks of the other one. Its collectives are MPI's own, and not recorded."""

    def __new__(cls, inner: MPI.Intercomm, own: list[int], label: str) -> "TracedIntercomm":
        """`own`: this group's ranks, numbered as in the run."""
        comm = super().__new__(cls, inner)
        comm.inner, comm.label, comm.posted = inner, label, []
        comm.world_ranks = in_the_run(inner.Get_remote_group())
        comm.members = [*own, *comm.world_ranks]
        return comm
