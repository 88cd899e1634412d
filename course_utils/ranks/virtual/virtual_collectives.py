"""Collectives of virtual ranks, under mpi4py's names, of buffers and of Python objects.

A collective has no algorithm that could be seen. It begins when the last rank has come, ends on all ranks at once,
and costs what `collective_costs` says.
"""

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from course_utils.ranks.virtual import virtual_mpi
from course_utils.ranks.virtual.buffers import copy_into, copy_received, kind_of, numbers, pieces, size_of
from course_utils.ranks.virtual.collective_costs import collective_seconds
from course_utils.ranks.virtual.rank_in_communicator import RankInCommunicator
from course_utils.ranks.virtual.virtual_mpi import Op
from course_utils.ranks.virtual.virtual_requests import CollectiveRequest, Request
from course_utils.ranks.virtual.virtual_time import OpenCollective, RunIsOver
from course_utils.trace.call_texts import collective_text
from course_utils.trace.events import Agreement
from course_utils.trace.mpi.collective_forms import with_both_forms
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.recorder import current_line


class VirtualCollective(NamedTuple):
    """A collective on one rank, before it begins.

    Attributes:
        agreement: what must be the same on all ranks.
        part: what this rank brings.
        size: bytes that it contributes.
        cost: the algorithm and the number of bytes, as `collective_costs` has them.
        take: puts what came of it into this rank's buffers, or gives it back.
    """

    agreement: Agreement
    part: Any
    size: int
    cost: tuple[str, float]
    take: Callable[[OpenCollective], Any]


@with_both_forms
class VirtualCollectives(RankInCommunicator):
    """Operations in which all ranks of a communicator take part."""

    inner: Any  # the same communicator, on which nothing is recorded

    # --- how a collective is run ------------------------------------------------------------------------------------

    def _message(self, nbytes: float) -> float:
        """Seconds of one message between the first and the last rank, alone on the way."""
        size = round(nbytes * self._scale)
        if size not in self._cost:
            first, last = self.world_ranks[0], self.world_ranks[-1]
            self._cost[size] = self.scheduler.network_model.idle_seconds(first, last, size) if self.size > 1 else 0.0
        return self._cost[size]

    def _seconds(self, algorithm: str, nbytes: float) -> float:
        """What a collective costs here; `nbytes` is n."""
        gamma = self.scheduler.network_model.gamma * self._scale
        return collective_seconds(algorithm, self.size, nbytes, self._message, gamma)

    def _enter(self, agreement: Agreement, part: Any, cost: tuple[str, float]) -> OpenCollective:
        seconds = functools.partial(self._seconds, *cost)
        channel = self.label if self.traced else f"{self.label}/untraced"
        self.scheduler.members.setdefault(channel, self.world_ranks)
        return self.scheduler.enter_collective(self.me, channel, self.size, self.rank, agreement, part, seconds)

    def _run_described(self, name: str, call: VirtualCollective) -> Any:
        """Meet the other ranks, then take what came of it."""
        began = self.moment()
        collective = self._enter(call.agreement, call.part, call.cost)
        try:
            self.scheduler.wait_for_collective(self.me, collective, collective_text(name, call.agreement.root))
        except RunIsOver:
            self._record_collective(name, call, collective, began, math.inf)
            raise
        self._record_collective(name, call, collective, began, self.moment())
        return call.take(collective)

    def _start_described(self, blocking: str, name: str, call: VirtualCollective) -> Request:
        """The nonblocking form. It meets the blocking one, though MPI does not let the two meet."""
        began, line = self.moment(), current_line()[0] if self._records else None
        collective = self._enter(call.agreement, call.part, call.cost)

        def on_completion(end: float, status: Any) -> None:
            self._record_collective(name, call, collective, began, end, line)

        text = collective_text(name, call.agreement.root)
        return CollectiveRequest(self, text, collective, call.take, on_completion)

    def _record_collective(self, name, call, collective, began, end, line=None):
        size = round(call.size * self._scale)
        if self.traced:
            self.me.sent_bytes += size
        if self._records:
            more, agreement = (None, None, size, collective.need.number, ""), call.agreement._replace(name=name)
            self._add_event(name, "collective", began, end, *more, agreement=agreement, line=line)

    def allgather_untraced(self, thing: Any) -> list:
        """What all ranks know of each other at no cost."""
        collective = self.inner._enter(Agreement("allgather"), thing, ("free", 0))
        self.scheduler.wait_for_collective(self.me, collective, "allgather")
        return collective.shared(list)

    # --- buffers ----------------------------------------------------------------------------------------------------

    def Barrier(self):
        return VirtualCollective(Agreement("Barrier"), None, 0, ("barrier", 0), lambda collective: None)

    def Bcast(self, buf, root=0):
        virtual_mpi.check_root("Bcast", root, self.size)
        array, own = numbers(buf), self.rank == root

        def take(collective: OpenCollective) -> None:
            if not own:
                copy_into(array, collective.parts[root])

        agreement = Agreement("Bcast", root, "", *size_of(array, kind_of(buf)))
        part, size = (array.copy(), array.nbytes) if own else (None, 0)
        return VirtualCollective(agreement, part, size, ("tree", array.nbytes), take)

    def _reduction(self, name, sendbuf, recvbuf, op, algorithm, root=None):
        contribution = recvbuf if virtual_mpi.is_in_place(sendbuf) else sendbuf
        operation, array = virtual_mpi.op_of(op), numbers(contribution)
        operation.check(name, array.dtype)
        if root is not None:
            virtual_mpi.check_root(name, root, self.size)
        agreement = Agreement(name, root, operation.name, *size_of(array, kind_of(contribution)))

        def take(collective: OpenCollective) -> None:
            if root in (None, self.rank):
                copy_into(numbers(recvbuf), collective.shared(functools.partial(_combined, operation)))

        return VirtualCollective(agreement, array.copy(), array.nbytes, (algorithm, array.nbytes), take)

    def _check_result(self, sendbuf, recvbuf, root=None):
        if root in (None, self.rank) and not virtual_mpi.is_in_place(sendbuf):
            _check_types(sendbuf, recvbuf)

    def Reduce(self, sendbuf, recvbuf, op=None, root=0):
        self._check_result(sendbuf, recvbuf, root)
        return self._reduction("Reduce", sendbuf, recvbuf, op, "reduce", root)

    def Allreduce(self, sendbuf, recvbuf, op=None):
        self._check_result(sendbuf, recvbuf)
        return self._reduction("Allreduce", sendbuf, recvbuf, op, "allreduce")

    def _scattered(self, name, sendbuf, recvbuf, op, counts):
        call, operation = self._reduction(name, sendbuf, recvbuf, op, ""), virtual_mpi.op_of(op)
        counts = counts or [len(call.part) // self.size] * self.size
        begin = sum(counts[: self.rank])

        def take(collective: OpenCollective) -> None:
            whole = collective.shared(functools.partial(_combined, operation))
            copy_into(numbers(recvbuf), whole[begin : begin + counts[self.rank]])

        return call._replace(cost=("reduce_scatter", call.size / self.size), take=take)

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=None):
        return self._scattered("Reduce_scatter_block", sendbuf, recvbuf, op, None)

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=None):
        counts = recvcounts or self.allgather_untraced(len(numbers(recvbuf)))
        return self._scattered("Reduce_scatter", sendbuf, recvbuf, op, counts)

    def _scan(self, name, sendbuf, recvbuf, op, last):
        self._check_result(sendbuf, recvbuf)
        operation = virtual_mpi.op_of(op)

        def take(collective: OpenCollective) -> None:
            if last:
                copy_into(numbers(recvbuf), _combined(operation, [collective.parts[rank] for rank in range(last)]))

        return self._reduction(name, sendbuf, recvbuf, op, "allreduce")._replace(take=take)

    def Scan(self, sendbuf, recvbuf, op=None):
        return self._scan("Scan", sendbuf, recvbuf, op, self.rank + 1)

    def Exscan(self, sendbuf, recvbuf, op=None):
        return self._scan("Exscan", sendbuf, recvbuf, op, self.rank)

    def _scatter(self, name, sendbuf, recvbuf, root):
        virtual_mpi.check_root(name, root, self.size)
        part = None
        if self.rank == root:
            whole, counts, starts = pieces(sendbuf, self.size, name == "Scatterv")
            part = whole.copy(), counts, starts

        def take(collective: OpenCollective) -> None:
            whole, counts, starts = collective.parts[root]
            if not virtual_mpi.is_in_place(recvbuf):
                block = whole[starts[self.rank] : starts[self.rank] + counts[self.rank]]
                copy_received(name, recvbuf, block, root)

        in_bytes = 0 if virtual_mpi.is_in_place(recvbuf) else numbers(recvbuf).nbytes
        return VirtualCollective(Agreement(name, root), part, part[0].nbytes if part else 0, ("parts", in_bytes), take)

    def Scatter(self, sendbuf, recvbuf, root=0):
        return self._scatter("Scatter", sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf, recvbuf, root=0):
        return self._scatter("Scatterv", sendbuf, recvbuf, root)

    def _gather(self, name, sendbuf, recvbuf, root):
        if virtual_mpi.is_in_place(sendbuf):
            target, counts, starts = pieces(recvbuf, self.size, name.endswith("v"))
            array = target[starts[self.rank] : starts[self.rank] + counts[self.rank]]
        else:
            array = numbers(sendbuf)
        if root is not None:
            virtual_mpi.check_root(name, root, self.size)
        places = pieces(recvbuf, self.size, name.endswith("v")) if root in (None, self.rank) else None

        def take(collective: OpenCollective) -> None:
            if places:
                target, counts, starts = places
                for rank in range(self.size):
                    piece = target[starts[rank] : starts[rank] + counts[rank]]
                    copy_received(name, piece, collective.parts[rank], rank)

        return VirtualCollective(Agreement(name, root), array.copy(), array.nbytes, ("parts", array.nbytes), take)

    def Gather(self, sendbuf, recvbuf, root=0):
        return self._gather("Gather", sendbuf, recvbuf, root)

    def Gatherv(self, sendbuf, recvbuf, root=0):
        return self._gather("Gatherv", sendbuf, recvbuf, root)

    def Allgather(self, sendbuf, recvbuf):
        return self._gather("Allgather", sendbuf, recvbuf, None)

    def Allgatherv(self, sendbuf, recvbuf):
        return self._gather("Allgatherv", sendbuf, recvbuf, None)

    def _exchange(self, name, sendbuf, recvbuf):
        contribution = recvbuf if virtual_mpi.is_in_place(sendbuf) else sendbuf
        array, *where = pieces(contribution, self.size, name == "Alltoallv")
        part = [array[start : start + count].copy() for count, start in zip(*where, strict=True)]
        target, counts, starts = pieces(recvbuf, self.size, name == "Alltoallv")

        def take(collective: OpenCollective) -> None:
            for rank in range(self.size):
                copy_into(target[starts[rank] : starts[rank] + counts[rank]], collective.parts[rank][self.rank])

        return VirtualCollective(Agreement(name), part, array.nbytes, ("pairs", array.nbytes / self.size), take)

    def Alltoall(self, sendbuf, recvbuf):
        return self._exchange("Alltoall", sendbuf, recvbuf)

    def Alltoallv(self, sendbuf, recvbuf):
        return self._exchange("Alltoallv", sendbuf, recvbuf)

    # --- collectives of Python objects ------------------------------------------------------------------------------

    def _objects(
        self, agreement: Agreement, part: Any, size: int, cost: tuple[str, float], take: Callable[[list], Any]
    ) -> Any:
        def unpack(collective: OpenCollective) -> Any:
            return take([collective.parts[rank] for rank in range(self.size)])

        return self._run_described(agreement.name, VirtualCollective(agreement, part, size, cost, unpack))

    def barrier(self):
        self.Barrier()

    def bcast(self, obj=None, root=0):
        virtual_mpi.check_root("bcast", root, self.size)
        data = pickle_object(obj) if self.rank == root else b""
        agreement = Agreement("bcast", root)
        return self._objects(agreement, data, len(data), ("tree", len(data)), lambda p: pickle.loads(p[root]))

    def scatter(self, sendobj=None, root=0):
        virtual_mpi.check_root("scatter", root, self.size)
        parts: list[bytes] = []
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter: the root needs a list of {self.size} objects, one for each rank")
            parts = [pickle_object(part) for part in sendobj]
        size = sum(map(len, parts))
        cost = "parts", size / self.size
        mine = self.rank
        agreement = Agreement("scatter", root)
        return self._objects(agreement, parts, size, cost, lambda p: pickle.loads(p[root][mine]))

    def gather(self, sendobj, root=0):
        virtual_mpi.check_root("gather", root, self.size)
        data = pickle_object(sendobj)
        mine = self.rank == root

        def take(parts: list[bytes]) -> list | None:
            return [pickle.loads(part) for part in parts] if mine else None

        return self._objects(Agreement("gather", root), data, len(data), ("parts", len(data)), take)

    def allgather(self, sendobj):
        data = pickle_object(sendobj)
        cost = "parts", len(data)
        return self._objects(Agreement("allgather"), data, len(data), cost, lambda p: list(map(pickle.loads, p)))

    def alltoall(self, sendobj):
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: every rank needs a list of {self.size} objects, one for each rank")
        parts, mine = [pickle_object(part) for part in sendobj], self.rank
        size = sum(map(len, parts))

        def take(all_parts: list) -> list:
            return [pickle.loads(parts[mine]) for parts in all_parts]

        return self._objects(Agreement("alltoall"), parts, size, ("pairs", size / self.size), take)

    def _folded(self, name, sendobj, op, root, algorithm, last):
        if root is not None:
            virtual_mpi.check_root(name, root, self.size)
        data, operation = pickle_object(sendobj), virtual_mpi.op_of(op)

        def take(parts: list[bytes]) -> Any:
            if root not in (None, self.rank) or not last:
                return None
            return functools.reduce(operation, map(pickle.loads, parts[:last]))

        agreement = Agreement(name, root, operation.name)
        return self._objects(agreement, data, len(data), (algorithm, len(data)), take)

    def reduce(self, sendobj, op=None, root=0):
        return self._folded("reduce", sendobj, op, root, "reduce", self.size)

    def allreduce(self, sendobj, op=None):
        return self._folded("allreduce", sendobj, op, None, "allreduce", self.size)

    def scan(self, sendobj, op=None):
        return self._folded("scan", sendobj, op, None, "allreduce", self.rank + 1)

    def exscan(self, sendobj, op=None):
        return self._folded("exscan", sendobj, op, None, "allreduce", self.rank)


def _check_types(sendbuf: Any, recvbuf: Any) -> None:
    """What mpi4py, or MPI, does not accept, in its words."""
    if kind_of(sendbuf) != kind_of(recvbuf):
        raise ValueError("mismatch in send and receive MPI datatypes")
    sent, room = len(numbers(sendbuf)), len(numbers(recvbuf))
    if sent != room:
        raise ValueError(f"mismatch in send count {sent} and receive count {room}")
    if sent and numbers(sendbuf).ctypes.data == numbers(recvbuf).ctypes.data:
        raise virtual_mpi.MPIException("Buffers must not be aliased")


def _combined(op: Op, parts: list[np.ndarray]) -> np.ndarray:
    """All parts in the order of ranks, added in the brackets of recursive doubling, as MPICH adds short vectors.

    Surplus ranks join their neighbours first: ((0 + 1) + 2) for three, ((0 + 1) + (2 + 3)) for four.
    Source: Thakur, Rabenseifner and Gropp 2005, section 4.5.
    """
    surplus = len(parts) - (1 << (len(parts).bit_length() - 1))
    pairs = [op.combine(*parts[2 * pair : 2 * pair + 2]) for pair in range(surplus)]
    groups = [*pairs, *parts[2 * surplus :]]
    while len(groups) > 1:
        groups = [op.combine(*groups[first : first + 2]) for first in range(0, len(groups), 2)]
    return groups[0]
