"""The collectives of a traced communicator: each is one event on every rank, and each wait is polled.

Those on buffers are MPI's nonblocking forms. Those on Python objects have none, so they are put together here from
collectives on bytes: first the lengths, then the pickles.
"""

import pickle
import time
from collections.abc import Callable
from functools import reduce as fold
from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.trace.memory import memory_checked
from course_utils.trace.recorder import here, recorder
from course_utils.trace.requests import TracedRequest
from course_utils.trace.waiting import Meeting


def size_of(buf: Any) -> int:
    """Bytes in what mpi4py takes as a buffer: an array, or a list [array, count, …, datatype]."""
    if buf is None or isinstance(buf, type(MPI.IN_PLACE)):
        return 0
    if isinstance(buf, (list, tuple)):
        counts = [part for part in buf[1:] if isinstance(part, int) and not isinstance(part, bool)]
        if buf[0] is not None and not counts:
            return size_of(buf[0])
        return counts[0] * np.asarray(memoryview(buf[0])).itemsize if buf[0] is not None else 0
    if hasattr(buf, "element_size"):  # a tensor of torch is no buffer of Python's, and mpi4py takes it
        return buf.numel() * buf.element_size()
    return memoryview(buf).nbytes


@memory_checked
class Collectives:
    """Mixed into `TracedComm`, which has `rank` and `size`."""

    inner: MPI.Intracomm
    label: str
    world_ranks: list[int]

    def _run(
        self, name: str, steps: Callable[[Callable[[MPI.Request], None]], Any], size: int, root: int | None = None
    ) -> Any:
        """Run `steps(wait)`, whose requests are waited for by polling, and record it all as one event."""
        line, place = here()
        began, end = time.perf_counter(), float("inf")
        need = self._meeting(name, root)
        try:
            result = steps(lambda request: recorder.wait(request.Test, name, place, need))
            end = time.perf_counter()
            return result
        finally:
            recorder.add(name, "collective", began, end, size=size, line=line)

    def _meeting(self, name: str, root: int | None) -> Meeting:
        """The next collective in the books, where Ibcast is a Bcast, and barrier a Barrier."""
        name = name[1:].capitalize() if name[0] == "I" else name.replace("barrier", "Barrier")
        whole = name if root is None else f"{name}(root={root})"
        return recorder.books.meet(self.label, self.world_ranks, whole)

    def _buffers(self, name: str, start: Callable[[], MPI.Request], size: int, root: int | None = None) -> None:
        self._run(name, lambda wait: wait(start()), size, root)

    def _started(
        self, name: str, start: Callable[[], MPI.Request], size: int, root: int | None = None
    ) -> TracedRequest:
        line, place = here()
        began = time.perf_counter()

        def finished(end: float, _: MPI.Status) -> None:
            recorder.add(name, "collective", began, end, size=size, line=line)

        need = self._meeting(name, root)
        return TracedRequest.traced(start(), name, place, finished, need)

    def _meet(self, name: str) -> None:
        """Wait until all ranks have come: afterwards a call that cannot be polled finishes for certain."""
        _, place = here()
        need = self._meeting(name, None)
        recorder.wait(self.inner.Ibarrier().Test, name, place, need)

    def _own(self, root: int, buf: Any) -> int:
        return size_of(buf) if self.rank == root else 0

    @staticmethod
    def _given(sendbuf: Any, recvbuf: Any) -> int:
        """The contribution of a rank: what it sends, or with IN_PLACE what already lies in the result."""
        return size_of(recvbuf) if isinstance(sendbuf, type(MPI.IN_PLACE)) else size_of(sendbuf)

    # --- buffers ----------------------------------------------------------------------------------------------------

    def Barrier(self):
        self._buffers("Barrier", self.inner.Ibarrier, 0)

    def Bcast(self, buf, root=0):
        self._buffers("Bcast", lambda: self.inner.Ibcast(buf, root), self._own(root, buf), root)

    def Scatter(self, sendbuf, recvbuf, root=0):
        self._buffers("Scatter", lambda: self.inner.Iscatter(sendbuf, recvbuf, root), self._own(root, sendbuf), root)

    def Scatterv(self, sendbuf, recvbuf, root=0):
        self._buffers(
            "Scatterv", lambda: self.inner.Iscatterv(sendbuf, recvbuf, root), self._sum_of(root, sendbuf), root
        )

    def Gather(self, sendbuf, recvbuf, root=0):
        self._buffers("Gather", lambda: self.inner.Igather(sendbuf, recvbuf, root), size_of_first(sendbuf), root)

    def Gatherv(self, sendbuf, recvbuf, root=0):
        self._buffers("Gatherv", lambda: self.inner.Igatherv(sendbuf, recvbuf, root), size_of_first(sendbuf), root)

    def Allgather(self, sendbuf, recvbuf):
        self._buffers("Allgather", lambda: self.inner.Iallgather(sendbuf, recvbuf), size_of_first(sendbuf))

    def Allgatherv(self, sendbuf, recvbuf):
        self._buffers("Allgatherv", lambda: self.inner.Iallgatherv(sendbuf, recvbuf), size_of_first(sendbuf))

    def Alltoall(self, sendbuf, recvbuf):
        self._buffers("Alltoall", lambda: self.inner.Ialltoall(sendbuf, recvbuf), size_of_first(sendbuf))

    def Alltoallv(self, sendbuf, recvbuf):
        self._buffers("Alltoallv", lambda: self.inner.Ialltoallv(sendbuf, recvbuf), size_of_first(sendbuf))

    def Reduce(self, sendbuf, recvbuf, op=MPI.SUM, root=0):
        size = self._given(sendbuf, recvbuf)
        self._buffers("Reduce", lambda: self.inner.Ireduce(sendbuf, recvbuf, op, root), size, root)

    def Allreduce(self, sendbuf, recvbuf, op=MPI.SUM):
        size = self._given(sendbuf, recvbuf)
        self._buffers("Allreduce", lambda: self.inner.Iallreduce(sendbuf, recvbuf, op), size)

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=MPI.SUM):
        start = self.inner.Ireduce_scatter_block
        self._buffers("Reduce_scatter_block", lambda: start(sendbuf, recvbuf, op), self._given(sendbuf, recvbuf))

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=MPI.SUM):
        start = self.inner.Ireduce_scatter
        size = self._given(sendbuf, recvbuf)
        self._buffers("Reduce_scatter", lambda: start(sendbuf, recvbuf, recvcounts, op), size)

    def Scan(self, sendbuf, recvbuf, op=MPI.SUM):
        self._buffers("Scan", lambda: self.inner.Iscan(sendbuf, recvbuf, op), self._given(sendbuf, recvbuf))

    def Exscan(self, sendbuf, recvbuf, op=MPI.SUM):
        self._buffers("Exscan", lambda: self.inner.Iexscan(sendbuf, recvbuf, op), self._given(sendbuf, recvbuf))

    def Ibarrier(self):
        return self._started("Ibarrier", self.inner.Ibarrier, 0)

    def Ibcast(self, buf, root=0):
        return self._started("Ibcast", lambda: self.inner.Ibcast(buf, root), self._own(root, buf), root)

    def Iallreduce(self, sendbuf, recvbuf, op=MPI.SUM):
        size = self._given(sendbuf, recvbuf)
        return self._started("Iallreduce", lambda: self.inner.Iallreduce(sendbuf, recvbuf, op), size)

    def Iallgather(self, sendbuf, recvbuf):
        return self._started("Iallgather", lambda: self.inner.Iallgather(sendbuf, recvbuf), size_of_first(sendbuf))

    def Ireduce(self, sendbuf, recvbuf, op=MPI.SUM, root=0):
        size = self._given(sendbuf, recvbuf)
        return self._started("Ireduce", lambda: self.inner.Ireduce(sendbuf, recvbuf, op, root), size, root)

    def _sum_of(self, root: int, sendbuf: Any) -> int:
        return size_of_first(sendbuf) if self.rank == root else 0

    # --- Python objects ---------------------------------------------------------------------------------------------

    def barrier(self):
        self._buffers("barrier", self.inner.Ibarrier, 0)

    def bcast(self, obj=None, root=0):
        data = pickle.dumps(obj, protocol=5) if self.rank == root else b""
        return self._run("bcast", lambda wait: self._bcast(wait, data, root), len(data), root)

    def scatter(self, sendobj=None, root=0):
        parts = []
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter: the root needs a list of {self.size} objects, one for each rank")
            parts = [pickle.dumps(part, protocol=5) for part in sendobj]
        return self._run("scatter", lambda wait: self._scatter(wait, parts, root), sum(map(len, parts)), root)

    def gather(self, sendobj, root=0):
        data = pickle.dumps(sendobj, protocol=5)
        return self._run("gather", lambda wait: self._gather(wait, data, root), len(data), root)

    def allgather(self, sendobj):
        data = pickle.dumps(sendobj, protocol=5)
        return self._run("allgather", lambda wait: self._allgather(wait, data), len(data))

    def alltoall(self, sendobj):
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: every rank needs a list of {self.size} objects, one for each rank")
        parts = [pickle.dumps(part, protocol=5) for part in sendobj]
        return self._run("alltoall", lambda wait: self._alltoall(wait, parts), sum(map(len, parts)))

    def reduce(self, sendobj, op=MPI.SUM, root=0):
        data = pickle.dumps(sendobj, protocol=5)
        gathered = self._run("reduce", lambda wait: self._gather(wait, data, root), len(data), root)
        return None if gathered is None else fold(op, gathered)

    def allreduce(self, sendobj, op=MPI.SUM):
        data = pickle.dumps(sendobj, protocol=5)
        return fold(op, self._run("allreduce", lambda wait: self._allgather(wait, data), len(data)))

    def scan(self, sendobj, op=MPI.SUM):
        data = pickle.dumps(sendobj, protocol=5)
        return fold(op, self._run("scan", lambda wait: self._allgather(wait, data), len(data))[: self.rank + 1])

    def exscan(self, sendobj, op=MPI.SUM):
        data = pickle.dumps(sendobj, protocol=5)
        earlier = self._run("exscan", lambda wait: self._allgather(wait, data), len(data))[: self.rank]
        return fold(op, earlier) if earlier else None

    # --- how objects travel: the lengths first, then the bytes ------------------------------------------------------

    def _bcast(self, wait: Callable, data: bytes, root: int) -> Any:
        length = np.array([len(data)])
        wait(self.inner.Ibcast(length, root))
        buffer = np.frombuffer(data, np.uint8).copy() if self.rank == root else np.empty(length[0], np.uint8)
        wait(self.inner.Ibcast([buffer, MPI.BYTE], root))
        return pickle.loads(buffer)

    def _scatter(self, wait: Callable, parts: list[bytes], root: int) -> Any:
        lengths = np.array([len(part) for part in parts] or [0])
        length = np.empty(1, lengths.dtype)
        wait(self.inner.Iscatter(lengths if parts else None, length, root))
        buffer = np.empty(length[0], np.uint8)
        wait(self.inner.Iscatterv(_packed(parts) if parts else None, [buffer, MPI.BYTE], root))
        return pickle.loads(buffer)

    def _gather(self, wait: Callable, data: bytes, root: int) -> list | None:
        lengths = np.empty(self.size, int) if self.rank == root else None
        wait(self.inner.Igather(np.array([len(data)]), lengths, root))
        receive = None if lengths is None else _room_for(lengths)
        wait(self.inner.Igatherv([np.frombuffer(data, np.uint8), MPI.BYTE], receive, root))
        return None if receive is None else _unpacked(receive)

    def _allgather(self, wait: Callable, data: bytes) -> list:
        lengths = np.empty(self.size, int)
        wait(self.inner.Iallgather(np.array([len(data)]), lengths))
        receive = _room_for(lengths)
        wait(self.inner.Iallgatherv([np.frombuffer(data, np.uint8), MPI.BYTE], receive))
        return _unpacked(receive)

    def _alltoall(self, wait: Callable, parts: list[bytes]) -> list:
        lengths = np.empty(self.size, int)
        wait(self.inner.Ialltoall(np.array([len(part) for part in parts]), lengths))
        receive = _room_for(lengths)
        wait(self.inner.Ialltoallv(_packed(parts), receive))
        return _unpacked(receive)


def size_of_first(buf: Any) -> int:
    """Bytes that a rank contributes where the buffer may carry counts per rank: all of the array's."""
    return size_of(buf[0] if isinstance(buf, (list, tuple)) else buf)


def _starts(lengths: Any) -> list[int]:
    return [0, *accumulate(lengths)][:-1]


def _packed(parts: list[bytes]) -> list:
    lengths = [len(part) for part in parts]
    return [np.frombuffer(b"".join(parts), np.uint8), (lengths, _starts(lengths)), MPI.BYTE]


def _room_for(lengths: np.ndarray) -> list:
    counts = [int(length) for length in lengths]
    return [np.empty(sum(counts), np.uint8), (counts, _starts(counts)), MPI.BYTE]


def _unpacked(received: list) -> list:
    data, (lengths, starts), _ = received
    return [pickle.loads(data[start : start + length]) for start, length in zip(starts, lengths, strict=True)]
