"""Collectives of neighbours on a grid or a graph: each rank needs its neighbours, and no other rank.

In the ledger such a call is a message to each rank to which an edge leads, and a receive from each from which one
comes.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.trace.events import Agreement
from course_utils.trace.mpi.call_errors import name_errors
from course_utils.trace.mpi.collectives import concatenate, receive_buffer, size_of_first, unpickle_parts
from course_utils.trace.mpi.memory import check_memory
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import CombinedNeed, Receive, single_needs

_ON_BUFFERS = "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"
_ON_OBJECTS = "neighbor_allgather", "neighbor_alltoall"
_TAGS = {name: tag for tag, name in enumerate((*_ON_BUFFERS, *_ON_OBJECTS))}
"""By the tags of its messages in the ledger a call meets calls of its own kind only."""


class NeighbourCollectives:
    """Mixed into communicators with a topology."""

    inner: Any
    label: str
    world_ranks: list[int]
    members: list[int]
    rank: int
    _calls = 0

    def enter(self, kind: str) -> CombinedNeed:
        """Note that this rank has come to a collective of neighbours; what it needs is given back."""
        ledger, label, tag = recorder.ledger, f"{self.label} neighbours", _TAGS[kind]
        sources, targets = ([self.world_ranks[rank] for rank in ranks if rank >= 0] for ranks in self.inner.inoutedges)
        for target in targets:
            ledger.add_send(label, self.members, target, tag)
        return CombinedNeed(tuple(ledger.add_receive(label, self.members, source, tag) for source in sources), all=True)

    def leave(self, kind: str, need: CombinedNeed, name: str, began: float, end: float, size: int) -> None:
        """Note that it is complete, or was broken off."""
        if end < float("inf"):
            for receive in single_needs(need):
                assert isinstance(receive, Receive)
                recorder.ledger.add_received(receive.message.communicator, receive.message.peer, _TAGS[kind])
        self._calls += 1
        # Others cannot be named as those who take part: each rank has its own neighbours.
        own = f"{self.label} neighbours of {self.rank}"
        line, _ = current_line()
        recorder.add(
            name, "collective", began, end, None, None, size, line, own, self._calls, agreement=Agreement(name)
        )

    def start_with_neighbours(self, kind: str, name: str, *buffers: Any) -> TracedRequest:
        """Begin a collective on buffers."""
        check_memory(name, *buffers)
        began, (_, source_line) = time.perf_counter(), current_line()
        request = getattr(self.inner, f"Ineighbor_{kind}")(*buffers)
        need, size = self.enter(kind), size_of_first(buffers[0])

        def on_completion(end: float, _: MPI.Status | None) -> None:
            self.leave(kind, need, name, began, end, size)

        return TracedRequest.wrap(request, name, source_line, on_completion, need)

    def neighbor_allgather(self, sendobj):
        return self._exchange("neighbor_allgather", [pickle_object(sendobj)] * self.inner.outdegree)

    def neighbor_alltoall(self, sendobj):
        edges = self.inner.outdegree
        if len(sendobj) != edges:
            raise ValueError(f"neighbor_alltoall: this rank needs a list of {edges} objects, one for each edge")
        return self._exchange("neighbor_alltoall", [pickle_object(part) for part in sendobj])

    def _exchange(self, name: str, parts: list[bytes]) -> list:
        """Send a part along each edge: first its length, and then its bytes."""
        began, end, (_, source_line) = time.perf_counter(), float("inf"), current_line()
        lengths = np.zeros(self.inner.indegree, np.int64)
        request = self.inner.Ineighbor_alltoall(np.array(list(map(len, parts)), np.int64), lengths)
        need = self.enter(name)
        try:
            recorder.wait(request.Test, name, source_line, need)
            received = receive_buffer(lengths)
            request = self.inner.Ineighbor_alltoallv(concatenate(parts), received)
            recorder.wait(request.Test, name, source_line, need)
            end = time.perf_counter()
        finally:
            self.leave(name, need, name, began, end, sum(map(len, parts)))
        return unpickle_parts(received)


def _blocking(kind: str) -> Callable:
    name = f"Neighbor_{kind}"

    @functools.wraps(getattr(MPI.Topocomm, name))
    def collective(self: NeighbourCollectives, sendbuf: Any, recvbuf: Any) -> None:
        self.start_with_neighbours(kind, name, sendbuf, recvbuf).Wait()

    return collective


def _nonblocking(kind: str) -> Callable:
    name = f"Ineighbor_{kind}"

    @functools.wraps(getattr(MPI.Topocomm, name))
    def collective(self: NeighbourCollectives, sendbuf: Any, recvbuf: Any) -> TracedRequest:
        request = self.start_with_neighbours(kind, name, sendbuf, recvbuf)
        request.track_buffers(sendbuf, recvbuf)
        return request

    return collective


for _kind in _ON_BUFFERS:
    for _name, _call in {f"Neighbor_{_kind}": _blocking, f"Ineighbor_{_kind}": _nonblocking}.items():
        setattr(NeighbourCollectives, _name, name_errors(_name, _call(_kind)))
