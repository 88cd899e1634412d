"""Collectives of virtual ranks, under mpi4py's names, of buffers and of Python objects.

A collective has no algorithm that could be seen. It begins when the last rank has come, ends on all ranks at once,
and costs what `collective_costs` says.
"""

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.ranks.virtual import virtual_mpi
from course_utils.ranks.virtual.buffers import cuts, fill, kind_of, numbers, put, size_of
from course_utils.ranks.virtual.collective_costs import collective_seconds
from course_utils.ranks.virtual.rank_in_communicator import Member
from course_utils.ranks.virtual.virtual_mpi import Op
from course_utils.ranks.virtual.virtual_requests import CollectiveRequest, Request
from course_utils.ranks.virtual.virtual_time import Gathering, Left
from course_utils.trace.events import Agreement
from course_utils.trace.pickles import pickled
from course_utils.trace.recorder import here


class VirtualCollectives(Member):
    """Operations in which all ranks of a communicator take part."""

    inner: Any  # the same communicator, on which nothing is recorded

    # --- collectives ------------------------------------------------------------------------------------------------

    def _message(self, nbytes: float) -> float:
        """Seconds of one message between the first and the last rank, alone on the way."""
        size = round(nbytes * self._scale)
        if size not in self._cost:
            first, last = self.world_ranks[0], self.world_ranks[-1]
            self._cost[size] = self.scheduler.wires.alone(first, last, size) if self.size > 1 else 0.0
        return self._cost[size]

    def _seconds(self, way: str, nbytes: float) -> float:
        """What a collective costs here; `nbytes` is n."""
        gamma = self.scheduler.wires.gamma * self._scale
        return collective_seconds(way, self.size, nbytes, self._message, gamma)

    def _collective(
        self,
        name: str,
        agreed: Agreement,
        part: Any,
        size: int,
        cost: tuple[str, float],
        take: Callable[[Gathering], Any],
    ) -> Any:
        """Meet the other ranks; then `take(gathering)` on each."""
        began, me = self.moment(), self.me
        gathering = self._come(agreed, part, cost)
        try:
            self.scheduler.join(me, gathering, name)
        except Left:
            self._note(name, agreed, gathering, began, math.inf, size)
            raise
        self._note(name, agreed, gathering, began, self.moment(), size)
        return take(gathering)

    def _come(self, agreed: Agreement, part: Any, cost: tuple[str, float]) -> Gathering:
        seconds = functools.partial(self._seconds, *cost)
        channel = self.label if self.traced else f"{self.label}/untraced"
        self.scheduler.members.setdefault(channel, self.world_ranks)
        return self.scheduler.come(self.me, channel, self.size, self.rank, agreed, part, seconds)

    def _note(self, name, agreed, gathering, began, end, size, line=None):
        if self.traced:
            self.me.sent_bytes += round(size * self._scale)
        if self._records:
            size = round(size * self._scale)
            self._add(
                name,
                "collective",
                began,
                end,
                None,
                None,
                size,
                gathering.meeting.number,
                "",
                agreement=agreed,
                line=line,
            )

    def _begun(self, name: str, agreed: Agreement, part: Any, size: int, cost: tuple, take: Callable) -> Request:
        """A nonblocking collective: it meets the blocking one, though MPI does not let the two meet."""
        blocking = agreed._replace(name=f"{name[1].upper()}{name[2:]}")
        began, line = self.moment(), here()[0] if self._records else None
        gathering = self._come(blocking, part, cost)

        def finished(end: float, status: Any) -> None:
            self._note(name, agreed, gathering, began, end, size, line)

        return CollectiveRequest(self, name, gathering, take, finished)

    def Barrier(self):
        self._collective(*self._barrier("Barrier"))

    barrier = Barrier

    def Ibarrier(self):
        return self._begun(*self._barrier("Ibarrier"))

    def _barrier(self, name):
        return name, Agreement(name), None, 0, ("barrier", 0), lambda gathering: None

    def _broadcast(self, name, buf, root):
        array = numbers(buf)
        own = self.rank == root
        part = array.copy() if own else None

        def take(gathering: Gathering) -> None:
            if not own:
                fill(array, gathering.parts[root])

        agreed = Agreement(name, root, "", *size_of(array, kind_of(buf)))
        return name, agreed, part, array.nbytes if own else 0, ("tree", array.nbytes), take

    def Bcast(self, buf, root=0):
        self._collective(*self._broadcast("Bcast", buf, root))

    def Ibcast(self, buf, root=0):
        return self._begun(*self._broadcast("Ibcast", buf, root))

    def _reduction(self, name, sendbuf, recvbuf, op, way, root=None):
        given = recvbuf if virtual_mpi.is_in_place(sendbuf) else sendbuf
        operation, array = virtual_mpi.op_of(op), numbers(given)
        if way and root in (None, self.rank) and given is not recvbuf:
            _check_alike(given, recvbuf)
        agreed = Agreement(name, root, operation.name, *size_of(array, kind_of(given)))

        def take(gathering: Gathering) -> None:
            if root in (None, self.rank):
                fill(numbers(recvbuf), gathering.shared(functools.partial(_combined, operation)))

        return name, agreed, array.copy(), array.nbytes, (way, array.nbytes), take

    def Reduce(self, sendbuf, recvbuf, op=None, root=0):
        self._collective(*self._reduction("Reduce", sendbuf, recvbuf, op, "reduce", root))

    def Allreduce(self, sendbuf, recvbuf, op=None):
        self._collective(*self._reduction("Allreduce", sendbuf, recvbuf, op, "allreduce"))

    def Ireduce(self, sendbuf, recvbuf, op=None, root=0):
        return self._begun(*self._reduction("Ireduce", sendbuf, recvbuf, op, "reduce", root))

    def Iallreduce(self, sendbuf, recvbuf, op=None):
        return self._begun(*self._reduction("Iallreduce", sendbuf, recvbuf, op, "allreduce"))

    def _scattered(self, name, sendbuf, recvbuf, op, counts):
        _, agreed, part, size, _, _ = self._reduction(name, sendbuf, recvbuf, op, "")
        operation = virtual_mpi.op_of(op)
        counts = counts or [len(part) // self.size] * self.size
        begin = sum(counts[: self.rank])

        def take(gathering: Gathering) -> None:
            whole = gathering.shared(functools.partial(_combined, operation))
            fill(numbers(recvbuf), whole[begin : begin + counts[self.rank]])

        return name, agreed, part, size, ("reduce_scatter", size / self.size), take

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=None):
        self._collective(*self._scattered("Reduce_scatter_block", sendbuf, recvbuf, op, None))

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=None):
        counts = recvcounts or self.allgather_untraced(len(numbers(recvbuf)))
        self._collective(*self._scattered("Reduce_scatter", sendbuf, recvbuf, op, counts))

    def allgather_untraced(self, thing: Any) -> list:
        """What all ranks know of each other at no cost."""
        gathering = self.inner._come(Agreement("allgather"), thing, ("free", 0))
        self.scheduler.join(self.me, gathering, "allgather")
        return gathering.shared(list)

    def _scan(self, name, sendbuf, recvbuf, op, last):
        name, agreed, part, size, cost, _ = self._reduction(name, sendbuf, recvbuf, op, "allreduce")
        operation = virtual_mpi.op_of(op)

        def take(gathering: Gathering) -> None:
            if last:
                fill(numbers(recvbuf), _combined(operation, [gathering.parts[rank] for rank in range(last)]))

        return name, agreed, part, size, cost, take

    def Scan(self, sendbuf, recvbuf, op=None):
        self._collective(*self._scan("Scan", sendbuf, recvbuf, op, self.rank + 1))

    def Exscan(self, sendbuf, recvbuf, op=None):
        self._collective(*self._scan("Exscan", sendbuf, recvbuf, op, self.rank))

    def _scatter(self, name, sendbuf, recvbuf, root):
        own = self.rank == root
        part = (numbers(sendbuf).copy(), *cuts(sendbuf, self.size)) if own else None

        def take(gathering: Gathering) -> None:
            whole, counts, starts = gathering.parts[root]
            if not virtual_mpi.is_in_place(recvbuf):
                block = whole[starts[self.rank] : starts[self.rank] + counts[self.rank]]
                put(name, recvbuf, block, root)

        size = part[0].nbytes if part else 0
        in_bytes = 0 if virtual_mpi.is_in_place(recvbuf) else numbers(recvbuf).nbytes
        return name, Agreement(name, root), part, size, ("parts", in_bytes), take

    def Scatter(self, sendbuf, recvbuf, root=0):
        self._collective(*self._scatter("Scatter", sendbuf, recvbuf, root))

    def Scatterv(self, sendbuf, recvbuf, root=0):
        self._collective(*self._scatter("Scatterv", sendbuf, recvbuf, root))

    def _gather(self, name, sendbuf, recvbuf, root):
        takes = root in (None, self.rank)
        if virtual_mpi.is_in_place(sendbuf):
            counts, starts = cuts(recvbuf, self.size)
            array = numbers(recvbuf)[starts[self.rank] : starts[self.rank] + counts[self.rank]]
        else:
            array = numbers(sendbuf)

        def take(gathering: Gathering) -> None:
            if takes:
                counts, starts = cuts(recvbuf, self.size)
                place = numbers(recvbuf)
                for rank in range(self.size):
                    piece = place[starts[rank] : starts[rank] + counts[rank]]
                    put(name, piece, gathering.parts[rank], rank)

        return name, Agreement(name, root), array.copy(), array.nbytes, ("parts", array.nbytes), take

    def Gather(self, sendbuf, recvbuf, root=0):
        self._collective(*self._gather("Gather", sendbuf, recvbuf, root))

    def Gatherv(self, sendbuf, recvbuf, root=0):
        self._collective(*self._gather("Gatherv", sendbuf, recvbuf, root))

    def Allgather(self, sendbuf, recvbuf):
        self._collective(*self._gather("Allgather", sendbuf, recvbuf, None))

    def Allgatherv(self, sendbuf, recvbuf):
        self._collective(*self._gather("Allgatherv", sendbuf, recvbuf, None))

    def _exchange(self, name, sendbuf, recvbuf):
        given = recvbuf if virtual_mpi.is_in_place(sendbuf) else sendbuf
        array = numbers(given)
        counts, starts = cuts(given, self.size)
        part = [array[start : start + count].copy() for start, count in zip(starts, counts)]

        def take(gathering: Gathering) -> None:
            counts, starts = cuts(recvbuf, self.size)
            place = numbers(recvbuf)
            for rank in range(self.size):
                fill(place[starts[rank] : starts[rank] + counts[rank]], gathering.parts[rank][self.rank])

        return name, Agreement(name), part, array.nbytes, ("pairs", array.nbytes / self.size), take

    def Alltoall(self, sendbuf, recvbuf):
        self._collective(*self._exchange("Alltoall", sendbuf, recvbuf))

    def Alltoallv(self, sendbuf, recvbuf):
        self._collective(*self._exchange("Alltoallv", sendbuf, recvbuf))

    # --- collectives of Python objects ------------------------------------------------------------------------------

    def _objects(
        self, agreed: Agreement, part: Any, size: int, cost: tuple[str, float], take: Callable[[list], Any]
    ) -> Any:
        def unpack(gathering: Gathering) -> Any:
            return take([gathering.parts[rank] for rank in range(self.size)])

        return self._collective(agreed.name, agreed, part, size, cost, unpack)

    def bcast(self, obj=None, root=0):
        data = pickled(obj) if self.rank == root else b""
        agreed = Agreement("bcast", root)
        return self._objects(agreed, data, len(data), ("tree", len(data)), lambda p: pickle.loads(p[root]))

    def scatter(self, sendobj=None, root=0):
        parts: list[bytes] = []
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter: the root needs a list of {self.size} objects, one for each rank")
            parts = [pickled(part) for part in sendobj]
        size = sum(map(len, parts))
        cost = "parts", size / self.size
        mine = self.rank
        agreed = Agreement("scatter", root)
        return self._objects(agreed, parts, size, cost, lambda p: pickle.loads(p[root][mine]))

    def gather(self, sendobj, root=0):
        data = pickled(sendobj)
        mine = self.rank == root

        def take(parts: list[bytes]) -> list | None:
            return [pickle.loads(part) for part in parts] if mine else None

        return self._objects(Agreement("gather", root), data, len(data), ("parts", len(data)), take)

    def allgather(self, sendobj):
        data = pickled(sendobj)
        cost = "parts", len(data)
        return self._objects(Agreement("allgather"), data, len(data), cost, lambda p: list(map(pickle.loads, p)))

    def alltoall(self, sendobj):
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: every rank needs a list of {self.size} objects, one for each rank")
        parts, mine = [pickled(part) for part in sendobj], self.rank
        size = sum(map(len, parts))

        def take(all_parts: list) -> list:
            return [pickle.loads(parts[mine]) for parts in all_parts]

        return self._objects(Agreement("alltoall"), parts, size, ("pairs", size / self.size), take)

    def _folded(self, name, sendobj, op, root, way, last):
        data, operation = pickled(sendobj), virtual_mpi.op_of(op)

        def take(parts: list[bytes]) -> Any:
            if root not in (None, self.rank) or not last:
                return None
            return functools.reduce(operation, map(pickle.loads, parts[:last]))

        agreed = Agreement(name, root, operation.name)
        return self._objects(agreed, data, len(data), (way, len(data)), take)

    def reduce(self, sendobj, op=None, root=0):
        return self._folded("reduce", sendobj, op, root, "reduce", self.size)

    def allreduce(self, sendobj, op=None):
        return self._folded("allreduce", sendobj, op, None, "allreduce", self.size)

    def scan(self, sendobj, op=None):
        return self._folded("scan", sendobj, op, None, "allreduce", self.rank + 1)

    def exscan(self, sendobj, op=None):
        return self._folded("exscan", sendobj, op, None, "allreduce", self.rank)


def _check_alike(sendbuf: Any, recvbuf: Any) -> None:
    """What mpi4py does not accept, in its words."""
    if kind_of(sendbuf) != kind_of(recvbuf):
        raise ValueError("mismatch in send and receive MPI datatypes")
    sent, room = len(numbers(sendbuf)), len(numbers(recvbuf))
    if sent != room:
        raise ValueError(f"mismatch in send count {sent} and receive count {room}")


def _combined(op: Op, parts: list[np.ndarray]) -> np.ndarray:
    """All parts in the order of ranks, added in the brackets of recursive doubling, as MPICH adds short vectors.

    Surplus ranks join their neighbours first: ((0 + 1) + 2) for three, ((0 + 1) + (2 + 3)) for four.
    Source: Thakur, Rabenseifner and Gropp 2005, section 4.5.
    """
    surplus = len(parts) - (1 << (len(parts).bit_length() - 1))
    pairs = [op.combine(*parts[2 * pair : 2 * pair + 2]) for pair in range(surplus)]
    groups = [*pairs, *parts[2 * surplus :]]
    while len(groups) > 1:
        groups = [op.combine(*groups[place : place + 2]) for place in range(0, len(groups), 2)]
    return groups[0]
