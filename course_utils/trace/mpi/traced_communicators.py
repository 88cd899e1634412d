"""Communicators that record what they do and never block for good: MPI's with every wait polled.

Code written for mpi4py runs on them unchanged. A blocking call of MPI cannot be interrupted, so each is made of its
nonblocking form and a loop that tests it: a rank that waits can say so, and can be asked to stop.
"""

import functools
import math
import time
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread
from course_utils.trace.events import Agreement
from course_utils.trace.ledger import WORLD
from course_utils.trace.mpi.collectives import Collectives
from course_utils.trace.mpi.inter_communicators import InterCollectives
from course_utils.trace.mpi.meetings import key_of, meetings
from course_utils.trace.mpi.neighbour_collectives import NeighbourCollectives
from course_utils.trace.mpi.persistent_requests import PersistentCollectives, partitioned_receive, partitioned_send
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.mpi.spawned_processes import SpawnedProcesses, check_arguments
from course_utils.trace.mpi.traced_messages import PointToPoint
from course_utils.trace.mpi.unrecorded_calls import mark_unrecorded_calls
from course_utils.trace.recorder import NO_LINE, current_line, recorder


def run_ranks_of(group: MPI.Group) -> list[int]:
    """A group's ranks, as they are numbered in the run."""
    return [int(rank) for rank in group.Translate_ranks(None, MPI.COMM_WORLD.Get_group())]


def _constructor(call: str) -> Callable:
    """A method that makes a communicator, which all ranks of the old one call."""

    @functools.wraps(getattr(MPI.Cartcomm, call))
    def make_communicator(self: "TracedComm", *args: Any, **kwargs: Any) -> MPI.Intracomm:
        return self._make(call, lambda: getattr(self.inner, call)(*args, **kwargs))

    return make_communicator


@mark_unrecorded_calls
class TracedComm(PointToPoint, PersistentCollectives, Collectives, MPI.Intracomm):
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
        recorder.remove_resource(self)
        recorder.ledger.freed.add(self.label)
        if not keeps_a_message(self.inner):
            super().Free()

    Disconnect = Free  # what is under way goes on all the same

    def Psend_init(self, buf, partitions, dest, tag=0, info=MPI.INFO_NULL):
        return partitioned_send(self, buf, partitions, dest, tag)

    def Precv_init(self, buf, partitions, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, info=MPI.INFO_NULL):
        return partitioned_receive(self, buf, partitions, source, tag)

    # --- new communicators, made by all ranks of this one -----------------------------------------------------------

    def _make(self, call: str, make: Callable[[], MPI.Intracomm]) -> MPI.Intracomm:
        """With a name on which all its ranks agree."""
        self.wait_for_all_ranks(call)
        name = self.inner.bcast(f"{self.label}/{time.time_ns()}")
        return self._trace(call, call_in_thread(make, call), name)

    def _trace(self, call: str, comm: MPI.Intracomm, name: str) -> MPI.Intracomm:
        if comm == MPI.COMM_NULL:
            return comm
        ranks = self.ranks_of(comm.Get_group())
        return recorder.add_resource(
            _WITH_TOPOLOGY.get(type(comm), TracedComm)(comm, ranks, f"{name}/{min(ranks)}"), call
        )

    def ranks_of(self, group: MPI.Group) -> list[int]:
        """A group's ranks, numbered as in the run."""
        return [self.world_ranks[rank] for rank in group.Translate_ranks(None, self.Get_group())]

    def Clone(self):
        return self.Dup()

    def Idup(self, info=MPI.INFO_NULL):
        name = array("d", [time.time()])
        inner, request = self.inner.Idup(info)
        agreed = self.inner.Ibcast(name)
        need = recorder.ledger.add_collective(self.label, self.members, Agreement("Idup"))
        copy = recorder.add_resource(TracedComm(inner, self.world_ranks, f"{self.label} copy"), "Idup")

        def on_completion(end: float, _: MPI.Status | None) -> None:
            if math.isfinite(end):
                recorder.wait(agreed.Test, "Idup", NO_LINE, need)
                copy.label = f"{self.label}/{name[0]}"

        return copy, TracedRequest.wrap(request, "Idup", current_line()[1], on_completion, need)

    Idup_with_info = Idup

    def private_copy(self, call: str) -> "TracedComm":
        """A copy of this communicator that a window, or a file, has for itself.

        What its ranks call together there is no collective of this communicator, and may come in another order.
        """
        self.wait_for_all_ranks(call)
        name = self.inner.bcast(f"{self.label}/{time.time_ns()}")
        return TracedComm(self.inner.Dup(), self.world_ranks, name)

    Dup, Dup_with_info = map(_constructor, ("Dup", "Dup_with_info"))
    Split, Split_type, Create = map(_constructor, ("Split", "Split_type", "Create"))
    Create_cart, Create_graph = _constructor("Create_cart"), _constructor("Create_graph")
    Create_dist_graph, Create_dist_graph_adjacent = map(
        _constructor, ("Create_dist_graph", "Create_dist_graph_adjacent")
    )

    def Spawn(self, command, args=None, maxprocs=1, info=MPI.INFO_NULL, root=0, errcodes=None):
        return self._spawn("Spawn", root, command, args, maxprocs, info, root, errcodes)

    def Spawn_multiple(self, command, args=None, maxprocs=None, info=MPI.INFO_NULL, root=0, errcodes=None):
        return self._spawn("Spawn_multiple", root, command, args, maxprocs, info, root, errcodes)

    def _spawn(self, call: str, root: int, command: Any, args: Any, *more: Any) -> SpawnedProcesses:
        if self.rank == root:
            check_arguments(call, command, args)
        self.wait_for_all_ranks(call)
        recorder.add_uncounted(call)  # nor what the new processes are sent
        comm = call_in_thread(functools.partial(getattr(self.inner, call), command, args, *more), call)
        self.wait_for_all_ranks(call)  # the new processes may end as soon as one rank has done its part with them
        return recorder.add_resource(SpawnedProcesses(comm), call)

    # --- made by some of its ranks ----------------------------------------------------------------------------------

    def Create_group(self, group, tag=0):
        ranks = self.ranks_of(group)
        need = recorder.ledger.add_collective(f"{self.label}/group {ranks} {tag}", ranks, Agreement("Create_group"))
        key = f"{key_of(self)} group {ranks} {tag}"
        meetings.tell(ranks, key)
        meetings.wait(ranks, key, "Create_group", need)
        comm = self.inner.Create_group(group, tag)
        return self._trace("Create_group", comm, comm.bcast(f"{self.label}/{time.time_ns()}"))

    def Create_intercomm(self, local_leader, peer_comm, remote_leader, tag=0):
        self.wait_for_all_ranks("Create_intercomm")
        if self.rank == local_leader and isinstance(peer_comm, PointToPoint):
            self._find_other_leader(peer_comm, remote_leader, tag)
        found = f"{self.label}/leader {local_leader}"
        need = recorder.ledger.add_collective(found, self.world_ranks, Agreement("Create_intercomm"))
        recorder.wait(self.inner.Ibarrier().Test, "Create_intercomm", current_line()[1], need)
        peer = getattr(peer_comm, "inner", peer_comm)
        make = functools.partial(self.inner.Create_intercomm, local_leader, peer, remote_leader, tag)
        comm = call_in_thread(make, "Create_intercomm")
        return recorder.add_resource(
            TracedIntercomm(comm, self.ranks_of(comm.Get_group()), label_of_both(comm)), "Create_intercomm"
        )

    def _find_other_leader(self, peer: PointToPoint, remote: int, tag: int) -> None:
        """Wait for the leader of the other group. In the ledger leaders send each other a message."""
        peer.check_peer("Create_intercomm", remote)
        ledger, label, other = recorder.ledger, f"{peer.label}/leaders", peer.world_ranks[remote]
        ledger.add_send(label, peer.members, other, tag)
        need = ledger.add_receive(label, peer.members, other, tag)
        key = f"{key_of(peer)} leaders {tag}"
        meetings.tell([other], key)
        meetings.wait([other], key, "Create_intercomm", need)
        ledger.add_received(label, other, tag)


@mark_unrecorded_calls
class TracedCartcomm(NeighbourCollectives, TracedComm, MPI.Cartcomm):
    """Ranks on a grid."""

    Sub = _constructor("Sub")


@mark_unrecorded_calls
class TracedGraphcomm(NeighbourCollectives, TracedComm, MPI.Graphcomm):
    """Ranks on a graph that all of them know."""


@mark_unrecorded_calls
class TracedDistgraphcomm(NeighbourCollectives, TracedComm, MPI.Distgraphcomm):
    """Ranks on a graph of which each knows its own edges."""


_WITH_TOPOLOGY: dict[type, type[TracedComm]] = {
    MPI.Cartcomm: TracedCartcomm,
    MPI.Graphcomm: TracedGraphcomm,
    MPI.Distgraphcomm: TracedDistgraphcomm,
}


def label_of_both(comm: MPI.Intercomm) -> str:
    """A name for an inter-communicator that has been made, on which all ranks of both groups agree."""
    theirs = comm.allgather(time.time_ns())[0]
    return f"{WORLD}/{theirs + comm.allgather(theirs)[0]}"


@mark_unrecorded_calls
class TracedIntercomm(PointToPoint, InterCollectives, MPI.Intercomm):
    """Two groups; messages go to ranks of the other one, and both come to collectives."""

    inner: MPI.Intercomm

    def __new__(
        cls, inner: MPI.Intercomm, own: list[int], label: str, others: list[int] | None = None
    ) -> "TracedIntercomm":
        """Trace a plain one.

        Args:
            own: this group's ranks, numbered as in the run.
            others: the same of the other group, where they are no ranks of the run.
        """
        comm = super().__new__(cls, inner)
        comm.inner, comm.label, comm.posted = inner, label, []
        comm.own_ranks = own
        comm.world_ranks = others or run_ranks_of(inner.Get_remote_group())
        comm.members = [*own, *comm.world_ranks]
        return comm

    def Merge(self, high=False):
        need = self.wait_for_all_ranks("Merge")
        comm = self.inner.Merge(high)
        return recorder.add_resource(
            TracedComm(comm, run_ranks_of(comm.Get_group()), f"{self.label}/{need.number}"), "Merge"
        )

    def Dup(self, info=None):
        self.wait_for_all_ranks("Dup")
        comm = self.inner.Dup(info)
        return recorder.add_resource(
            TracedIntercomm(comm, self.own_ranks, label_of_both(comm), self.world_ranks), "Dup"
        )

    Clone = Dup

    def Free(self):
        recorder.remove_resource(self)
        recorder.ledger.freed.add(self.label)
        if not keeps_a_message(self.inner):
            super().Free()

    Disconnect = Free  # what is under way goes on all the same


_left_over: list[TracedComm] = []  # by the run before
_LOOKS = 2
"""A look in vain is what takes messages off the network, so the second look finds what has just come."""
_MANY = 3
"""Communicators of one line that a run may not leave: a loop makes them."""
_attach, _detach = MPI.Attach_buffer, MPI.Detach_buffer
_attached = False


def attach_buffer(buf: Any) -> None:
    """`MPI.Attach_buffer`, which must be undone. What a run before has left attached, as it failed, goes first."""
    global _attached
    if _attached and id(attach_buffer) not in recorder.resources:
        _detach()
    _attach(buf)
    _attached = True
    recorder.add_resource(attach_buffer, "Attach_buffer")


def detach_buffer() -> Any:
    """`MPI.Detach_buffer`."""
    global _attached
    _attached = False
    recorder.remove_resource(attach_buffer)
    return _detach()


def keeps_a_message(comm: MPI.Comm) -> bool:
    """Whether a message that nobody has received lies there, or is on its way to this rank and seen already.

    Such a communicator must not be freed: MPI gives its number to a later one, which would receive the message.
    """
    return any(comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG) for _ in range(_LOOKS))


def free_leftovers() -> list[str]:
    """Free what a run has made and not freed, lest many runs use up MPI's means.

    Communicators of one group are freed a run later, when what was sent on them has arrived (see `keeps_a_message`).
    Gives back, in words, what nobody should leave: anything but one or two communicators.
    """
    for comm in _left_over:
        comm.Free()
    _left_over.clear()
    resources = list(recorder.resources.values())
    counts = Counter(text for _, text in resources)
    words = [
        f"what {text} makes is never freed{f' ({number} times)' if number > 1 else ''}"
        for text, number in counts.items()
        if number >= _MANY or not any(hasattr(thing, "inner") for thing, owner_text in resources if owner_text == text)
    ]
    for thing, _ in resources:
        if thing is attach_buffer:
            detach_buffer()
        elif isinstance(thing, TracedComm):
            recorder.ledger.freed.add(thing.label)
            _left_over.append(thing)
        elif hasattr(thing, "inner"):
            thing.Free()
    return words


def forget_leftovers() -> None:
    """Of a run that failed: no later one can use the communicators that it has made."""
    things = [thing for thing, _ in recorder.resources.values()]
    recorder.ledger.freed |= {thing.label for thing in things if hasattr(thing, "inner")}
