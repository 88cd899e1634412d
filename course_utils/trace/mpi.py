"""Communicators that record what they do and never block for good: MPI's with every wait polled.

Code written for mpi4py runs on them unchanged. A blocking call of MPI cannot be interrupted, so each is made of its
nonblocking form and a loop that tests it: a rank that waits can say so, and can be asked to stop.
"""

import contextlib
import functools
import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import polled
from course_utils.trace.collectives import Collectives
from course_utils.trace.events import Agreement
from course_utils.trace.ledger import WORLD
from course_utils.trace.recorder import here, recorder
from course_utils.trace.traced_messages import PointToPoint
from course_utils.trace.wait_graph import Need

_STILL = (
    *("Attach_", "Call_errhandler", "Compare", "Delete_", "Detach_", "Free", "Get_", "Is_", "Set_", "Shift"),
    *("free", "py2f", "toint"),
)
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
        recorder.does_not_count(call.__name__)
        return polled(functools.partial(call, *args, **kwargs), call.__name__)

    return unrecorded


def in_the_run(group: MPI.Group) -> list[int]:
    """A group's ranks, as they are numbered in the run."""
    return [int(rank) for rank in group.Translate_ranks(None, MPI.COMM_WORLD.Get_group())]


def _maker(call: str) -> Callable:
    """A method that makes a communicator, which all ranks of the old one call."""

    @functools.wraps(getattr(MPI.Cartcomm, call))
    def made(self: "TracedComm", *args: Any, **kwargs: Any) -> MPI.Intracomm:
        return self._made(call, lambda: getattr(self.inner, call)(*args, **kwargs))

    return made


@knows_what_it_misses
class TracedComm(PointToPoint, Collectives, MPI.Intracomm):
    """A communicator of one group: messages, collectives, and the making of new communicators.

    Attributes:
        inner: the plain communicator that carries the messages. It can be exchanged for a fresh one, so that messages
            left over from an interrupted run never reach the next.
    """

    inner: MPI.Intracomm

    def __new__(cls, inner: MPI.Intracomm, world_ranks: list[int] | None = None, label: str = WORLD) -> "TracedComm":
        comm = MPI.Intracomm.__new__(cls, inner)  # of a grid, too: Cython knows no other way
        comm.label = label
        comm.world_ranks = comm.members = world_ranks or list(range(inner.size))
        comm.renew(inner)
        return comm

    def renew(self, inner: MPI.Intracomm) -> None:
        """Carry messages over `inner` from now on; forget receives that were never completed."""
        self.inner = inner
        self.posted = []

    def Free(self):
        recorder.has_freed(self)
        super().Free()

    # --- new communicators, made by all ranks of this one -----------------------------------------------------------

    def _made(self, call: str, make: Callable[[], MPI.Intracomm]) -> MPI.Intracomm:
        """With a name on which all its ranks agree."""
        self.meet(call)
        name = self.inner.bcast(f"{self.label}/{time.time_ns()}")
        return self._traced(call, make(), name)

    def _traced(self, call: str, comm: MPI.Intracomm, name: str) -> MPI.Intracomm:
        if comm == MPI.COMM_NULL:
            return comm
        ranks = self.ranks_of(comm.Get_group())
        return recorder.has_made(_WITH_TOPOLOGY.get(type(comm), TracedComm)(comm, ranks, f"{name}/{min(ranks)}"), call)

    def ranks_of(self, group: MPI.Group) -> list[int]:
        """A group's ranks, numbered as in the run."""
        return [self.world_ranks[place] for place in group.Translate_ranks(None, self.Get_group())]

    def Clone(self):
        return self.Dup()

    Dup, Split, Split_type, Create = map(_maker, ("Dup", "Split", "Split_type", "Create"))
    Create_cart, Create_graph = _maker("Create_cart"), _maker("Create_graph")
    Create_dist_graph, Create_dist_graph_adjacent = map(_maker, ("Create_dist_graph", "Create_dist_graph_adjacent"))

    # --- made by some of its ranks ----------------------------------------------------------------------------------

    def Create_group(self, group, tag=0):
        ranks = self.ranks_of(group)
        need = recorder.books.meet(f"{self.label}/group {ranks} {tag}", ranks, Agreement("Create_group"))
        comm = polled(lambda: self.inner.Create_group(group, tag), "Create_group", need)
        return self._traced("Create_group", comm, comm.bcast(f"{self.label}/{time.time_ns()}"))

    def Create_intercomm(self, local_leader, peer_comm, remote_leader, tag=0):
        self.meet("Create_intercomm")
        if self.rank == local_leader and isinstance(peer_comm, PointToPoint):
            peer_comm.check_peer("Create_intercomm", remote_leader)
        peer = getattr(peer_comm, "inner", peer_comm)
        make = functools.partial(self.inner.Create_intercomm, local_leader, peer, remote_leader, tag)
        with self._leaders_find_each_other(local_leader, peer_comm, remote_leader, tag) as need:
            comm = polled(make, "Create_intercomm", need)
        mine = self.inner.bcast(time.time_ns())
        label = f"{WORLD}/{sorted({mine, comm.allgather(mine)[0]})}"
        traced = TracedIntercomm(comm, self.ranks_of(comm.Get_group()), label)
        return recorder.has_made(traced, "Create_intercomm")

    @contextlib.contextmanager
    def _leaders_find_each_other(self, leader: int, peer: Any, remote: int, tag: int) -> Iterator[Need | None]:
        """What this rank waits for. In the books leaders send each other a message, and the others wait for theirs."""
        books, found = recorder.books, f"{self.label}/leader {leader}"
        if self.rank != leader:
            yield books.meet(found, self.world_ranks, Agreement("Create_intercomm"))
            return
        if not isinstance(peer, PointToPoint):
            yield None
        else:
            label, other = f"{peer.label}/leaders", peer.world_ranks[remote]
            books.send(label, peer.members, other, tag)
            yield books.receive(label, peer.members, other, tag)
            books.took(label, other, tag)
        books.meet(found, self.world_ranks, Agreement("Create_intercomm"))


@knows_what_it_misses
class TracedCartcomm(TracedComm, MPI.Cartcomm):
    """Ranks on a grid."""

    Sub = _maker("Sub")


@knows_what_it_misses
class TracedGraphcomm(TracedComm, MPI.Graphcomm):
    """Ranks on a graph that all of them know."""


@knows_what_it_misses
class TracedDistgraphcomm(TracedComm, MPI.Distgraphcomm):
    """Ranks on a graph of which each knows its own edges."""


_WITH_TOPOLOGY: dict[type, type[TracedComm]] = {
    MPI.Cartcomm: TracedCartcomm,
    MPI.Graphcomm: TracedGraphcomm,
    MPI.Distgraphcomm: TracedDistgraphcomm,
}


@knows_what_it_misses
class TracedIntercomm(PointToPoint, MPI.Intercomm):
    """Two groups; messages go to ranks of the other one. Its collectives are MPI's own, and not recorded."""

    inner: MPI.Intercomm

    def __new__(cls, inner: MPI.Intercomm, own: list[int], label: str) -> "TracedIntercomm":
        """`own`: this group's ranks, numbered as in the run."""
        comm = super().__new__(cls, inner)
        comm.inner, comm.label, comm.posted = inner, label, []
        comm.world_ranks = in_the_run(inner.Get_remote_group())
        comm.members = [*own, *comm.world_ranks]
        return comm

    def Merge(self, high=False):
        need, came = recorder.books.meet(self.label, self.members, Agreement("Merge")), self.inner.Ibarrier()
        recorder.wait(came.Test, "Merge", here()[1], need)
        comm = self.inner.Merge(high)
        return recorder.has_made(TracedComm(comm, in_the_run(comm.Get_group()), f"{self.label}/{need.number}"), "Merge")

    def Free(self):
        recorder.has_freed(self)
        super().Free()


_MANY = 3
"""Communicators of one line that a run may not leave: a loop makes them."""
_attach, _detach = MPI.Attach_buffer, MPI.Detach_buffer
_attached = False


def attach_buffer(buf: Any) -> None:
    """`MPI.Attach_buffer`, which must be undone. What a run before has left attached, as it failed, goes first."""
    global _attached
    if _attached and id(attach_buffer) not in recorder.made:
        _detach()
    _attach(buf)
    _attached = True
    recorder.has_made(attach_buffer, "Attach_buffer")


def detach_buffer() -> Any:
    """`MPI.Detach_buffer`."""
    global _attached
    _attached = False
    recorder.has_freed(attach_buffer)
    return _detach()


def free_what_was_left() -> list[str]:
    """Free what a run has made and not freed, lest many runs use up MPI's means.

    Gives back, in words, what nobody should leave: anything but one or two communicators.
    """
    left = list(recorder.made.values())
    found = Counter(text for _, text in left)
    words = [
        f"{text} makes what nobody frees{f', {number} times' if number > 1 else ''}"
        for text, number in found.items()
        if number >= _MANY or not any(hasattr(thing, "inner") for thing, told in left if told == text)
    ]
    for thing, _ in left:
        if thing is attach_buffer:
            detach_buffer()
        elif hasattr(thing, "inner"):
            thing.Free()
    return words
