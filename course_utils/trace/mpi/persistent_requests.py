"""Persistent requests of MPI's own that can be seen and left: collectives, and messages of several partitions.

In the ledger a partitioned message is sent when its last partition is ready.
"""

import functools
import inspect
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from mpi4py import MPI

from course_utils.trace.call_texts import receive_text, send_text
from course_utils.trace.events import Agreement
from course_utils.trace.mpi.call_errors import name_errors
from course_utils.trace.mpi.collectives import CollectiveCall, Collectives, size_of
from course_utils.trace.mpi.memory import check_memory
from course_utils.trace.mpi.requests import PersistentRequest, TracedRequest
from course_utils.trace.mpi.type_signatures import unit_of
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import CombinedNeed, Need
from course_utils.words import join

_MOST_NAMED = 3
"""Partitions that are named in a report."""
_NEVER = CombinedNeed((), all=False)
"""What is needed where this rank itself would have to do something, and waits instead."""


class PlainPersistentRequest(PersistentRequest):
    """A persistent request of MPI's: `Start` starts it itself."""

    def __init__(self, call: str, plain: MPI.Prequest, wrap: Callable[[MPI.Prequest], TracedRequest]) -> None:
        """Keep MPI's request; `wrap` traces it each time when it has been started."""

        def begin() -> TracedRequest:
            plain.Start()
            return wrap(plain)

        super().__init__(call, begin)
        self.plain = plain

    def Free(self) -> None:
        super().Free()
        if self.inactive:
            self.plain.Free()

    free = Free


class PartitionedRequest(PlainPersistentRequest):
    """What `Psend_init` and `Precv_init` make."""

    def __init__(self, comm: Any, call: str, plain: MPI.Prequest, buf: Any, partitions: int, peer: int, tag: int):
        """Take MPI's request of a communicator; `peer`: the rank to which, or from which, the message goes."""
        super().__init__(call, plain, self._wrap)
        self._comm, self._call, self._buf, self._partitions = comm, call, buf, partitions
        self._sends, self._peer, self._tag = call == "Psend_init", peer, tag
        self._label = f"{comm.label} partitions"
        self._missing: set[int] = set()

    def _wrap(self, plain: MPI.Prequest) -> TracedRequest:
        line, source_line = current_line()
        began = time.perf_counter()
        peer = self._comm.world_ranks[self._peer] if self._peer >= 0 else None
        kind = "send" if self._sends else "recv"

        def on_completion(end: float, _: MPI.Status | None) -> None:
            if peer is None:
                return
            if not self._sends and math.isfinite(end):
                recorder.ledger.add_received(self._label, peer, self._tag)
            size, holds = size_of(self._buf), unit_of(self._buf)
            recorder.add(self._call, kind, began, end, peer, self._tag, size, line, self._label, 0, holds)

        need: Need | None = None
        if self._sends:
            self._missing = set(range(self._partitions))
        elif peer is not None:
            need = recorder.ledger.add_receive(self._label, self._comm.members, peer, self._tag)
        text = (send_text if self._sends else receive_text)(self._call, self._peer, self._tag)
        return TracedRequest.wrap(plain, text, source_line, on_completion, need)

    def _note_ready(self, partitions: Sequence[int]) -> None:
        if not self._missing:
            return
        self._missing -= set(partitions)
        if not self._missing and self._peer >= 0 and self._active is not None:
            peer = self._comm.world_ranks[self._peer]
            self._active.need = recorder.ledger.add_send(self._label, self._comm.members, peer, self._tag)

    def Pready(self, partition):
        self.plain.Pready(partition)
        self._note_ready([partition])

    def Pready_range(self, partition_low, partition_high):
        self.plain.Pready_range(partition_low, partition_high)
        self._note_ready(range(partition_low, partition_high + 1))

    def Pready_list(self, partitions):
        self.plain.Pready_list(partitions)
        self._note_ready(partitions)

    def Parrived(self, partition):
        arrived = self._active is None or self._active.done or self.plain.Parrived(partition)
        if not arrived:
            recorder.note_failed_test(f"Parrived({partition}) of {self.text}", self.need)
        return arrived

    def wait_polling(self, status: Any = None, call: str = "Wait") -> None:
        missing = [f"Pready({number})" for number in sorted(self._missing)]
        if self._active is not None and missing and self._peer >= 0:
            self._active.need = _NEVER
            call += f" without {join(missing[:_MOST_NAMED])}"
        super().wait_polling(status, call)


class PersistentCollectives:
    """Mixed into communicators of one group: the collectives that MPI starts again and again.

    Each has a name of its own in the ledger, because ranks may start several in different orders.
    """

    inner: MPI.Intracomm
    label: str
    members: list[int]

    def init_collective(self, name: str, call: CollectiveCall, *args: Any, **kwargs: Any) -> PlainPersistentRequest:
        """`Bcast_init` and the like; `call` describes what each start begins."""
        init, agreement, ledger = f"{name}_init", call.agreement(name), recorder.ledger
        plain = getattr(self.inner, init)(*args, **kwargs)
        number = ledger.add_collective(f"{self.label} persistent", self.members, Agreement(init)).number
        label = f"{self.label} persistent {number}"

        def wrap(plain: MPI.Prequest) -> TracedRequest:
            line, source_line = current_line()
            began, need = time.perf_counter(), ledger.add_collective(label, self.members, agreement)

            def on_completion(end: float, _: MPI.Status | None) -> None:
                recorder.add_collective(init, agreement, need, began, end, call.size, line, call.layouts)

            return TracedRequest.wrap(plain, init, source_line, on_completion, need)

        return PlainPersistentRequest(init, plain, wrap)


def _persistent(name: str) -> Callable:
    describe = inspect.unwrap(getattr(Collectives, name))

    @functools.wraps(getattr(MPI.Intracomm, f"{name}_init"))
    def init(self: PersistentCollectives, *args: Any, **kwargs: Any) -> PlainPersistentRequest:
        described = {key: value for key, value in kwargs.items() if key != "info"}
        return self.init_collective(name, describe(self, *args, **described), *args, **kwargs)

    return name_errors(f"{name}_init", init)


for _name in (
    *("Barrier", "Bcast", "Scatter", "Scatterv", "Gather", "Gatherv", "Allgather", "Allgatherv", "Alltoall"),
    *("Alltoallv", "Reduce", "Allreduce", "Reduce_scatter_block", "Reduce_scatter", "Scan", "Exscan"),
):
    setattr(PersistentCollectives, f"{_name}_init", _persistent(_name))


def partitioned_send(comm: Any, buf: Any, partitions: int, dest: int, tag: int) -> PartitionedRequest:
    """`Psend_init` on a traced communicator."""
    comm.check_peer("Psend_init", dest)
    check_memory("Psend_init", buf)
    plain = comm.inner.Psend_init(buf, partitions, dest, tag)
    return PartitionedRequest(comm, "Psend_init", plain, buf, partitions, dest, tag)


def partitioned_receive(comm: Any, buf: Any, partitions: int, source: int, tag: int) -> PartitionedRequest:
    """`Precv_init` on a traced communicator."""
    comm.check_peer("Precv_init", source)
    check_memory("Precv_init", buf)
    plain = comm.inner.Precv_init(buf, partitions, source, tag)
    return PartitionedRequest(comm, "Precv_init", plain, buf, partitions, source, tag)
