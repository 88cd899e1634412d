"""The collectives of a traced communicator: each is one event on every rank, and each wait is polled.

Those on buffers are MPI's nonblocking forms. Those on Python objects have none, so they are put together here from
collectives on bytes: first the lengths, then the pickles.
"""

import operator
import pickle
import time
import zlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from functools import reduce as fold
from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.trace.call_texts import collective_text
from course_utils.trace.events import BYTES, Agreement, BufferLayout, unit_bytes
from course_utils.trace.mpi.call_errors import NotABuffer
from course_utils.trace.mpi.collective_forms import with_both_forms
from course_utils.trace.mpi.memory import check_buffers
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.mpi.type_signatures import (
    bytes_of,
    cut_layout,
    item_bytes,
    message_bytes,
    message_layouts,
    parts_of,
    typed_layout,
    unit_of,
    vector_layout,
    whole_layout,
)
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import Collective


def size_of(buf: Any) -> int:
    """Bytes in what mpi4py takes as a buffer: an array, or a list [array, count, …, datatype].

    Raises:
        NotABuffer: it is neither.
    """
    if type(buf) is np.ndarray:
        return buf.nbytes
    if buf is None or isinstance(buf, type(MPI.IN_PLACE)):
        return 0
    if isinstance(buf, (list, tuple)) and buf:
        counts = [part for part in buf[1:] if isinstance(part, int) and not isinstance(part, bool)]
        if len(buf) > 1 and isinstance(buf[1], tuple) and len(buf[1]) == 2 and isinstance(buf[1][0], int):
            counts = [buf[1][0]]  # a count and a displacement
        types = [part for part in buf[1:] if isinstance(part, MPI.Datatype)]
        if buf[0] is not None and counts and types:
            return counts[0] * types[0].Get_size()
        if bytes_of(buf[0]) is None and buf[0] is not None:
            raise NotABuffer(buf)
        return counts[0] * item_bytes(parts_of(buf)) if buf[0] is not None and counts else size_of(buf[0])
    size = bytes_of(buf)
    if size is None:
        raise NotABuffer(buf)
    return size


_OPERATIONS = (
    (MPI.SUM, "SUM"),
    (MPI.MAX, "MAX"),
    (MPI.MIN, "MIN"),
    (MPI.PROD, "PROD"),
    (MPI.LAND, "LAND"),
    (MPI.LOR, "LOR"),
    (MPI.BAND, "BAND"),
    (MPI.BOR, "BOR"),
    (MPI.MAXLOC, "MAXLOC"),
    (MPI.MINLOC, "MINLOC"),
)
"""MPI's operations, by which a report calls them."""


Amount = tuple[int | None, str]
"""How much a message holds: 10 "float64", 80 BYTES."""
_UNKNOWN_AMOUNT: Amount = (None, "")
Layouts = tuple[BufferLayout | None, ...]


def _amount_of(buf: Any, pieces: int = 1) -> Amount:
    """How much a buffer's message holds, or one of so many pieces of it."""
    if buf is None or _is_in_place(buf) or (size := message_bytes(buf, pieces)) is None:
        return _UNKNOWN_AMOUNT
    unit = unit_of(buf)
    item = unit_bytes(unit)
    return (size // item, unit) if item and size % item == 0 else (size, BYTES)


def _is_in_place(buf: Any) -> bool:
    return isinstance(buf, type(MPI.IN_PLACE))


@dataclass(frozen=True)
class CollectiveCall:
    """A collective on buffers, before it begins.

    Attributes:
        start: begins MPI's nonblocking form.
        size: bytes that this rank contributes.
        amount: how much each rank brings, where that must be the same.
        layouts: as `Event`'s.
    """

    start: Callable[[], MPI.Request]
    size: int
    root: int | None = None
    op: MPI.Op | None = None
    amount: Amount = _UNKNOWN_AMOUNT
    layouts: Layouts = ()

    def buffers(self, rank: int) -> tuple[Any, Any]:
        """What MPI reads and what it writes on a rank, until a nonblocking call is complete."""
        first, second, *_ = getattr(self.start, "args", (None, None))
        if isinstance(second, int):  # a broadcast has one buffer, and a root
            return (first, None) if rank == second else (None, first)
        return first, second

    def agreement(self, name: str) -> Agreement:
        """What must be the same on all ranks that make this call under this name."""
        return _agreement_of(name, self.root, self.op, self.amount)


def _agreement_of(name: str, root: Any = None, op: Any = None, amount: Amount = _UNKNOWN_AMOUNT) -> Agreement:
    operation = (
        ""
        if op is None
        else next((known for mpi_operation, known in _OPERATIONS if mpi_operation == op), "another operation")
    )
    root = operator.index(root) if hasattr(root, "__index__") else root  # a number of NumPy's is no JSON
    return Agreement(name, root, operation, *amount)


@check_buffers
@with_both_forms
class Collectives:
    """Mixed into `TracedComm`, which has `rank` and `size`."""

    inner: Any  # an Intracomm, or an Intercomm
    label: str
    members: list[int]
    world_ranks: list[int]
    rank: int
    size: int

    def call_text(self, name: str, root: int | None) -> str:
        """Return a collective in words, with its root if that matters."""
        return collective_text(name, root)

    def _run(
        self,
        name: str,
        steps: Callable[[Callable[[MPI.Request], None]], Any],
        size: int,
        agreement: Agreement,
        layouts: Layouts = (),
    ) -> Any:
        """Run `steps(wait)`, whose requests are waited for by polling, and record it all as one event."""
        line, source_line = current_line()
        began, end = time.perf_counter(), float("inf")
        need, begun = recorder.ledger.add_collective(self.label, self.members, agreement), False

        def wait(request: MPI.Request) -> None:
            nonlocal begun
            begun = True
            recorder.wait(request.Test, self.call_text(name, agreement.root), source_line, need)

        try:
            result = steps(wait)
            end = time.perf_counter()
            return result
        except Exception:
            if not begun:
                recorder.ledger.remove_collective(need)
            raise
        finally:
            recorder.add_collective(name, agreement, need, began, end, size, line, layouts)

    def _run_described(self, name: str, call: CollectiveCall) -> None:
        self._run(name, lambda wait: wait(call.start()), call.size, call.agreement(name), call.layouts)

    def _start_described(self, blocking: str, name: str, call: CollectiveCall) -> TracedRequest:
        """The nonblocking form. In the ledger it is the blocking one, though MPI does not let the two meet."""
        line, source_line = current_line()
        began = time.perf_counter()
        need = recorder.ledger.add_collective(self.label, self.members, call.agreement(blocking))
        with recorder.ledger.remove_if_rejected(need):
            request = call.start()

        def on_completion(end: float, _: MPI.Status | None) -> None:
            recorder.add_collective(name, call.agreement(name), need, began, end, call.size, line, call.layouts)

        traced = TracedRequest.wrap(request, self.call_text(name, call.root), source_line, on_completion, need)
        traced.track_buffers(*call.buffers(self.rank))
        return traced

    def wait_for_all_ranks(self, name: str) -> Collective:
        """Wait until all ranks have come, to the same: afterwards a call that cannot be polled finishes for certain."""
        _, source_line = current_line()
        need = recorder.ledger.add_collective(self.label, self.members, Agreement(name))
        own_code, all_codes = array("L", [zlib.crc32(name.encode())]), array("L", bytes(8 * self.size))
        request = self.inner.Iallgather(own_code, all_codes)
        recorder.wait(lambda: request.Test() and len(set(all_codes)) == 1, name, source_line, need)
        return need

    def _root_bytes(self, root: int, buf: Any) -> int:
        return size_of(buf) if self.rank == root else 0

    def _root_bytes_of_all(self, root: int, sendbuf: Any) -> int:
        return size_of_first(sendbuf) if self.rank == root else 0

    @staticmethod
    def _contribution(sendbuf: Any, recvbuf: Any) -> Any:
        """The contribution of a rank: what it sends, or with IN_PLACE what already lies in the result."""
        return recvbuf if _is_in_place(sendbuf) else sendbuf

    def _part_bytes(self, own: Any, whole: Any) -> int:
        """The bytes of a rank's part, of its own or, with IN_PLACE, of the whole."""
        return size_of_first(whole) // self.size if _is_in_place(own) else size_of_first(own)

    def _amount_of_part(self, own: Any, whole: Any) -> Amount:
        """What the part of each rank holds, of its own or, with IN_PLACE, of the whole that the root has."""
        return _amount_of(whole, len(self.world_ranks)) if _is_in_place(own) else _amount_of(own)

    # --- buffers: what to begin, and what must be the same on all ranks ---------------------------------------------

    def Barrier(self):
        return CollectiveCall(self.inner.Ibarrier, 0)

    def Bcast(self, buf, root=0):
        own = message_layouts(buf)
        layouts: Layouts = own and ((*own, None) if self.rank == root else (None, *own))
        start = partial(self.inner.Ibcast, buf, root)
        return CollectiveCall(start, self._root_bytes(root, buf), root, None, _amount_of(buf), layouts)

    def Scatter(self, sendbuf, recvbuf, root=0):
        gives = cut_layout(sendbuf, len(self.world_ranks)) if self.rank == root else None
        return CollectiveCall(
            partial(self.inner.Iscatter, sendbuf, recvbuf, root),
            self._root_bytes(root, sendbuf),
            root,
            amount=self._amount_of_part(recvbuf, sendbuf),
            layouts=(gives, whole_layout(recvbuf)),
        )

    def Scatterv(self, sendbuf, recvbuf, root=0):
        gives = vector_layout(sendbuf, self.world_ranks) if self.rank == root else None
        start = partial(self.inner.Iscatterv, sendbuf, recvbuf, root)
        layouts = gives, whole_layout(recvbuf)
        return CollectiveCall(start, self._root_bytes_of_all(root, sendbuf), root, layouts=layouts)

    def Gather(self, sendbuf, recvbuf, root=0):
        receives = cut_layout(recvbuf, len(self.world_ranks)) if self.rank == root else None
        return CollectiveCall(
            partial(self.inner.Igather, sendbuf, recvbuf, root),
            self._part_bytes(sendbuf, recvbuf),
            root,
            amount=self._amount_of_part(sendbuf, recvbuf),
            layouts=(whole_layout(sendbuf), receives),
        )

    def Gatherv(self, sendbuf, recvbuf, root=0):
        receives = vector_layout(recvbuf, self.world_ranks) if self.rank == root else None
        start = partial(self.inner.Igatherv, sendbuf, recvbuf, root)
        return CollectiveCall(start, size_of_first(sendbuf), root, layouts=(whole_layout(sendbuf), receives))

    def Allgather(self, sendbuf, recvbuf):
        start = partial(self.inner.Iallgather, sendbuf, recvbuf)
        layouts = whole_layout(sendbuf), cut_layout(recvbuf, len(self.world_ranks))
        amount = self._amount_of_part(sendbuf, recvbuf)
        return CollectiveCall(start, self._part_bytes(sendbuf, recvbuf), amount=amount, layouts=layouts)

    def Allgatherv(self, sendbuf, recvbuf):
        start = partial(self.inner.Iallgatherv, sendbuf, recvbuf)
        layouts = whole_layout(sendbuf), vector_layout(recvbuf, self.world_ranks)
        return CollectiveCall(start, size_of_first(sendbuf), layouts=layouts)

    def Alltoall(self, sendbuf, recvbuf):
        contribution = self._contribution(sendbuf, recvbuf)
        layouts = cut_layout(contribution, len(self.world_ranks)), cut_layout(recvbuf, len(self.world_ranks))
        amount = _amount_of(contribution, len(self.world_ranks))
        start = partial(self.inner.Ialltoall, sendbuf, recvbuf)
        return CollectiveCall(start, size_of_first(contribution), amount=amount, layouts=layouts)

    def Alltoallv(self, sendbuf, recvbuf):
        contribution = self._contribution(sendbuf, recvbuf)
        layouts = vector_layout(contribution, self.world_ranks), vector_layout(recvbuf, self.world_ranks)
        start = partial(self.inner.Ialltoallv, sendbuf, recvbuf)
        return CollectiveCall(start, size_of_first(sendbuf), layouts=layouts)

    def Alltoallw(self, sendbuf, recvbuf):
        contribution = self._contribution(sendbuf, recvbuf)
        layouts = typed_layout(contribution, self.world_ranks), typed_layout(recvbuf, self.world_ranks)
        start = partial(self.inner.Ialltoallw, sendbuf, recvbuf)
        size = sum(layouts[0].sizes) if layouts[0] else 0
        return CollectiveCall(start, size, layouts=layouts)

    def _reduction(
        self,
        start: Callable[[], MPI.Request],
        contribution: Any,
        result: Any,
        op: MPI.Op,
        root: int | None = None,
    ) -> CollectiveCall:
        layouts: Layouts = ()
        gives, receives = message_layouts(contribution), message_layouts(result) if root in (None, self.rank) else ()
        if gives or receives:
            layouts = gives[0] if gives else None, receives[0] if receives else None
        return CollectiveCall(start, size_of(contribution), root, op, _amount_of(contribution), layouts)

    def Reduce(self, sendbuf, recvbuf, op=MPI.SUM, root=0):
        start = partial(self.inner.Ireduce, sendbuf, recvbuf, op, root)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), recvbuf, op, root)

    def Allreduce(self, sendbuf, recvbuf, op=MPI.SUM):
        start = partial(self.inner.Iallreduce, sendbuf, recvbuf, op)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), recvbuf, op)

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=MPI.SUM):
        start = partial(self.inner.Ireduce_scatter_block, sendbuf, recvbuf, op)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), None, op)

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=MPI.SUM):
        start = partial(self.inner.Ireduce_scatter, sendbuf, recvbuf, recvcounts, op)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), None, op)

    def Scan(self, sendbuf, recvbuf, op=MPI.SUM):
        start = partial(self.inner.Iscan, sendbuf, recvbuf, op)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), recvbuf, op)

    def Exscan(self, sendbuf, recvbuf, op=MPI.SUM):
        start = partial(self.inner.Iexscan, sendbuf, recvbuf, op)
        return self._reduction(start, self._contribution(sendbuf, recvbuf), recvbuf, op)

    # --- Python objects ---------------------------------------------------------------------------------------------

    def barrier(self):
        self._run("barrier", lambda wait: wait(self.inner.Ibarrier()), 0, Agreement("Barrier"))

    def bcast(self, obj=None, root=0):
        data = pickle_object(obj) if self.rank == root else b""
        return self._run("bcast", lambda wait: self._bcast(wait, data, root), len(data), _agreement_of("bcast", root))

    def scatter(self, sendobj=None, root=0):
        parts = []
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter: the root needs a list of {self.size} objects, one for each rank")
            parts = [pickle_object(part) for part in sendobj]
        return self._run(
            "scatter",
            lambda wait: self._scatter(wait, parts, root),
            sum(map(len, parts)),
            _agreement_of("scatter", root),
        )

    def gather(self, sendobj, root=0):
        data = pickle_object(sendobj)
        return self._run(
            "gather", lambda wait: self._gather(wait, data, root), len(data), _agreement_of("gather", root)
        )

    def allgather(self, sendobj):
        data = pickle_object(sendobj)
        return self._run("allgather", lambda wait: self._allgather(wait, data), len(data), Agreement("allgather"))

    def alltoall(self, sendobj):
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: every rank needs a list of {self.size} objects, one for each rank")
        parts = [pickle_object(part) for part in sendobj]
        return self._run(
            "alltoall", lambda wait: self._alltoall(wait, parts), sum(map(len, parts)), Agreement("alltoall")
        )

    def reduce(self, sendobj, op=MPI.SUM, root=0):
        data = pickle_object(sendobj)
        gathered = self._run(
            "reduce", lambda wait: self._gather(wait, data, root), len(data), _agreement_of("reduce", root, op)
        )
        return None if gathered is None else fold(op, gathered)

    def allreduce(self, sendobj, op=MPI.SUM):
        data = pickle_object(sendobj)
        return fold(
            op,
            self._run(
                "allreduce", lambda wait: self._allgather(wait, data), len(data), _agreement_of("allreduce", op=op)
            ),
        )

    def scan(self, sendobj, op=MPI.SUM):
        data = pickle_object(sendobj)
        return fold(
            op,
            self._run("scan", lambda wait: self._allgather(wait, data), len(data), _agreement_of("scan", op=op))[
                : self.rank + 1
            ],
        )

    def exscan(self, sendobj, op=MPI.SUM):
        data = pickle_object(sendobj)
        earlier = self._run(
            "exscan", lambda wait: self._allgather(wait, data), len(data), _agreement_of("exscan", op=op)
        )[: self.rank]
        return fold(op, earlier) if earlier else None

    # --- how objects travel: the lengths first, then the bytes ------------------------------------------------------

    def _bcast(self, wait: Callable, data: bytes, root: int) -> Any:
        length = np.array([len(data)])
        wait(self.inner.Ibcast(length, root))
        buffer = np.frombuffer(data, np.uint8).copy() if self.rank == root else np.empty(length[0], np.uint8)
        wait(self.inner.Ibcast([buffer, MPI.BYTE], root))
        return pickle.loads(buffer.data)

    def _scatter(self, wait: Callable, parts: list[bytes], root: int) -> Any:
        lengths = np.array([len(part) for part in parts] or [0])
        length = np.empty(1, lengths.dtype)
        wait(self.inner.Iscatter(lengths if parts else None, length, root))
        buffer = np.empty(length[0], np.uint8)
        wait(self.inner.Iscatterv(concatenate(parts) if parts else None, [buffer, MPI.BYTE], root))
        return pickle.loads(buffer.data)

    def _gather(self, wait: Callable, data: bytes, root: int) -> list | None:
        lengths = np.empty(self.size, np.int64) if self.rank == root else None
        wait(self.inner.Igather(np.array([len(data)]), lengths, root))
        receive = None if lengths is None else receive_buffer(lengths)
        wait(self.inner.Igatherv([np.frombuffer(data, np.uint8), MPI.BYTE], receive, root))
        return None if receive is None else unpickle_parts(receive)

    def _allgather(self, wait: Callable, data: bytes) -> list:
        lengths = np.empty(self.size, np.int64)
        wait(self.inner.Iallgather(np.array([len(data)]), lengths))
        receive = receive_buffer(lengths)
        wait(self.inner.Iallgatherv([np.frombuffer(data, np.uint8), MPI.BYTE], receive))
        return unpickle_parts(receive)

    def _alltoall(self, wait: Callable, parts: list[bytes]) -> list:
        lengths = np.empty(self.size, np.int64)
        wait(self.inner.Ialltoall(np.array([len(part) for part in parts]), lengths))
        receive = receive_buffer(lengths)
        wait(self.inner.Ialltoallv(concatenate(parts), receive))
        return unpickle_parts(receive)


def size_of_first(buf: Any) -> int:
    """Bytes that a rank contributes where the buffer may carry counts per rank: all of the array's."""
    return size_of(buf[0] if isinstance(buf, (list, tuple)) else buf)


def _offsets(lengths: Any) -> list[int]:
    return [0, *accumulate(lengths)][:-1]


def concatenate(parts: list[bytes]) -> list:
    """Pickles as a buffer to be sent, one to each rank."""
    lengths = [len(part) for part in parts]
    return [np.frombuffer(b"".join(parts), np.uint8), (lengths, _offsets(lengths)), MPI.BYTE]


def receive_buffer(lengths: np.ndarray) -> list:
    """A buffer for pickles of these lengths."""
    counts = [int(length) for length in lengths]
    return [np.empty(sum(counts), np.uint8), (counts, _offsets(counts)), MPI.BYTE]


def unpickle_parts(received: list) -> list:
    """The objects in a buffer that has been received; None where nothing was sent, beyond the open end of a grid."""
    data, (lengths, starts), _ = received
    return [
        pickle.loads(data[start : start + length]) if length else None
        for start, length in zip(starts, lengths, strict=True)
    ]
