"""A communicator that records what it does and never blocks for good: `MPI.Intracomm` with every wait polled.

Code written for mpi4py runs on it unchanged. A blocking call of MPI cannot be interrupted, so each one here is made of
its nonblocking form and a loop that tests it: a rank that waits can say so, and can be asked to stop.
"""

import functools
import inspect
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.trace.books import WORLD
from course_utils.trace.collectives import Collectives, size_of
from course_utils.trace.memory import memory_checked
from course_utils.trace.recorder import here, recorder
from course_utils.trace.requests import Finished, PickledReceive, TracedRequest
from course_utils.trace.waiting import Receive


def name_of(rank: int) -> str:
    """A rank as one types it: any source is ANY_SOURCE."""
    return "ANY_SOURCE" if rank == MPI.ANY_SOURCE else str(rank)


def _plain(buf: Any) -> bool:
    """A contiguous array of numbers, whose bytes can be received as they come?"""
    return isinstance(buf, np.ndarray) and buf.flags.c_contiguous and buf.flags.writeable


def as_bytes(buf: Any) -> Any:
    """The buffer as bytes, where that is possible.

    MPICH ends all ranks when a message does not fill a whole number of the array's elements; bytes always fit.
    """
    return [buf.reshape(-1).view(np.uint8), MPI.BYTE] if _plain(buf) else buf


def check_whole(call: str, buf: Any, size: int) -> None:
    """Refuse a message that ends in the middle of a number.

    Raises:
        ValueError: sender and receiver do not mean the same type.
    """
    if _plain(buf) and buf.itemsize and size % buf.itemsize:
        raise ValueError(
            f"{call}: the message has {size} bytes, no whole number of {buf.dtype} of {buf.itemsize} bytes. "
            "Is the dtype the same on both sides?"
        )


_STILL = "Abort", "Attach_", "Call_errhandler", "Compare", "Delete_", "Detach_", "Free", "Get_", "Is_", "Set_"
_STILL += "free", "py2f", "toint"
"""How the names of calls begin that move nothing between ranks."""


def knows_what_it_misses(owner: type) -> type:
    """A class whose inherited calls, which are not recorded, say so in the books."""
    for name in set(dir(MPI.Intracomm)) - set(vars(owner)) - set(vars(Collectives)):
        call = getattr(MPI.Intracomm, name)
        if inspect.isroutine(call) and not inspect.ismethod(call) and not name.startswith(("_", *_STILL)):
            setattr(owner, name, _unrecorded(call))
    return owner


def _unrecorded(call: Callable) -> Callable:
    @functools.wraps(call)
    def unrecorded(*args: Any, **kwargs: Any) -> Any:
        recorder.books.complete = False
        return call(*args, **kwargs)

    return unrecorded


@knows_what_it_misses
@memory_checked
class TracedComm(Collectives, MPI.Intracomm):
    """Point-to-point operations and the making of new communicators; the collectives stand in `Collectives`.

    Attributes:
        inner: the plain communicator that carries the messages. It can be exchanged for a fresh one, so that messages
            left over from an interrupted run never reach the next.
        world_ranks: for each rank of this communicator, its rank in the run, which is the one that events carry.
        label: its name in the books, the same on all its ranks.
    """

    inner: MPI.Intracomm
    world_ranks: list[int]
    label: str

    def __new__(cls, inner: MPI.Intracomm, world_ranks: list[int] | None = None, label: str = WORLD) -> "TracedComm":
        comm = super().__new__(cls, inner)
        comm.label = label
        comm.world_ranks = world_ranks or list(range(inner.size))
        comm.renew(inner)
        return comm

    def renew(self, inner: MPI.Intracomm) -> None:
        """Carry messages over `inner` from now on; forget receives that were never completed."""
        self.inner = inner
        self.posted: list[PickledReceive] = []

    # --- sending ----------------------------------------------------------------------------------------------------

    def _check_peer(self, call: str, rank: int, least: int = 0) -> None:
        """A clear line for a rank that does not exist. PROC_NULL and, for receives, ANY_SOURCE are allowed."""
        if rank != MPI.PROC_NULL and not least <= rank < self.size:
            raise ValueError(f"{call}: there is no rank {rank}; the ranks are 0 to {self.size - 1}")

    def _world(self, rank: int) -> int | None:
        return self.world_ranks[rank] if 0 <= rank < self.size else None

    def _start_send(self, name: str, start: Callable[[], MPI.Request], dest: int, tag: int, size: int) -> TracedRequest:
        self._check_peer(name, dest)
        line, place = here()
        began = time.perf_counter()
        peer, need = self._world(dest), None
        if peer is not None:
            need = recorder.books.send(self.label, self.world_ranks, peer, tag)

        def finished(end: float, _: MPI.Status | None) -> None:
            if peer is not None:
                recorder.add(name, "send", began, end, peer=peer, tag=tag, size=size, line=line)

        return TracedRequest.traced(start(), f"{name}(dest={dest})", place, finished, need)

    def _send_buffer(self, name: str, start: Callable, buf: Any, dest: int, tag: int) -> TracedRequest:
        return self._start_send(name, lambda: start(buf, dest, tag), dest, tag, size_of(buf))

    def _send_object(self, name: str, start: Callable, obj: Any, dest: int, tag: int) -> TracedRequest:
        data = pickle.dumps(obj, protocol=5)
        return self._start_send(name, lambda: start([data, MPI.BYTE], dest, tag), dest, tag, len(data))

    def Send(self, buf, dest, tag=0):
        self._send_buffer("Send", self.inner.Isend, buf, dest, tag).wait()

    def Ssend(self, buf, dest, tag=0):
        self._send_buffer("Ssend", self.inner.Issend, buf, dest, tag).wait()

    def Isend(self, buf, dest, tag=0):
        return self._send_buffer("Isend", self.inner.Isend, buf, dest, tag)

    def Issend(self, buf, dest, tag=0):
        return self._send_buffer("Issend", self.inner.Issend, buf, dest, tag)

    def send(self, obj, dest, tag=0):
        self._send_object("send", self.inner.Isend, obj, dest, tag).wait()

    def ssend(self, obj, dest, tag=0):
        self._send_object("ssend", self.inner.Issend, obj, dest, tag).wait()

    def isend(self, obj, dest, tag=0):
        return self._send_object("isend", self.inner.Isend, obj, dest, tag)

    def issend(self, obj, dest, tag=0):
        return self._send_object("issend", self.inner.Issend, obj, dest, tag)

    # --- receiving --------------------------------------------------------------------------------------------------

    def Recv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        self._check_peer("Recv", source, MPI.ANY_SOURCE)
        if source == MPI.PROC_NULL:
            return
        message, found, note = self._match("Recv", source, tag)
        room, size = size_of(buf), found.Get_count(MPI.BYTE)
        if size > room:
            message.Recv([np.empty(size, np.uint8), MPI.BYTE])
            note()
            raise ValueError(
                f"Recv: the message from rank {found.source} has {size} bytes, the array for it has room for {room}. "
                "Are shape and dtype the same on both sides?"
            )
        message.Recv(as_bytes(buf), status)
        note()
        check_whole("Recv", buf, size)

    def recv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        self._check_peer("recv", source, MPI.ANY_SOURCE)
        return self._irecv("recv", source, tag).wait(status)

    def Irecv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
        self._check_peer("Irecv", source, MPI.ANY_SOURCE)
        return self._start_receive("Irecv", buf, source, tag)

    def irecv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
        self._check_peer("irecv", source, MPI.ANY_SOURCE)
        return self._irecv("irecv", source, tag)

    def wants(self, source: int, tag: int) -> Receive:
        """What a receive waits for."""
        wanted = None if tag == MPI.ANY_TAG else tag
        return recorder.books.receive(self.label, self.world_ranks, self._world(source), wanted)

    def _received(self, name: str, source: int, tag: int, began: float, line: int | None) -> Finished:
        """What to record when a receive has completed, or was broken off."""

        def finished(end: float, status: MPI.Status | None) -> None:
            sender, its_tag = (source, tag) if status is None else (status.source, status.tag)
            size = 0 if status is None else status.Get_count(MPI.BYTE)
            if sender != MPI.PROC_NULL:
                if status is not None:
                    recorder.books.took(self.label, self._world(sender), its_tag)
                shown = None if its_tag == MPI.ANY_TAG else its_tag
                recorder.add(name, "recv", began, end, peer=self._world(sender), tag=shown, size=size, line=line)

        return finished

    def _match(self, name: str, source: int, tag: int) -> tuple[MPI.Message, MPI.Status, Callable[[], None]]:
        """Wait until a message has come and take it out of the queue; the third thing records that it was read."""
        line, place = here()
        began, status = time.perf_counter(), MPI.Status()
        found: list[MPI.Message] = []

        def arrived() -> bool:
            self.serve_posted()
            # A look in vain is what takes messages off the network, so the second look finds what has just come.
            message = self.inner.Improbe(source, tag, status) or self.inner.Improbe(source, tag, status)
            if message is not None:
                found.append(message)
            return message is not None

        record = self._received(name, source, tag, began, line)
        try:
            recorder.wait(arrived, f"{name}(source={name_of(source)})", place, self.wants(source, tag))
        except KeyboardInterrupt:
            record(float("inf"), None)
            raise
        return found[0], status, lambda: record(time.perf_counter(), status)

    def _start_receive(self, name: str, buf: Any, source: int, tag: int) -> TracedRequest:
        line, place = here()
        request = self.inner.Irecv(as_bytes(buf), source, tag)
        record = self._received(name, source, tag, time.perf_counter(), line)

        def finished(end: float, status: MPI.Status | None) -> None:
            record(end, status)
            if status is not None:
                check_whole(name, buf, status.Get_count(MPI.BYTE))

        need = None if source == MPI.PROC_NULL else self.wants(source, tag)
        return TracedRequest.traced(request, f"{name}(source={name_of(source)})", place, finished, need)

    def _irecv(self, name: str, source: int, tag: int) -> PickledReceive:
        line, place = here()
        began = time.perf_counter()
        text = f"{name}(source={name_of(source)})"
        receive = PickledReceive(self, source, tag, text, place, self._received(name, source, tag, began, line))
        self.posted.append(receive)
        return receive

    def serve_posted(self) -> None:
        """Give messages that have come to the receives that were posted first, as MPI's ordering demands."""
        blocked: set[tuple[int, int]] = set()
        for receive in list(self.posted):
            key = (receive.source, receive.tag)
            if key not in blocked and not receive.try_to_match():
                blocked.add(key)

    # --- both, and looking ahead ------------------------------------------------------------------------------------

    def Sendrecv(
        self,
        sendbuf,
        dest,
        sendtag=0,
        recvbuf=None,
        source=MPI.ANY_SOURCE,
        recvtag=MPI.ANY_TAG,
        status=None,
    ):
        self._check_peer("Sendrecv", source, MPI.ANY_SOURCE)
        receive = self._start_receive("Sendrecv", recvbuf, source, recvtag)
        send = self._send_buffer("Sendrecv", self.inner.Isend, sendbuf, dest, sendtag)
        receive.wait_with(status)
        send.wait()

    def Sendrecv_replace(self, buf, dest, sendtag=0, source=MPI.ANY_SOURCE, recvtag=MPI.ANY_TAG, status=None):
        self.Sendrecv(np.array(buf), dest, sendtag, buf, source, recvtag, status)

    def sendrecv(
        self,
        sendobj,
        dest,
        sendtag=0,
        recvbuf=None,
        source=MPI.ANY_SOURCE,
        recvtag=MPI.ANY_TAG,
        status=None,
    ):
        self._check_peer("sendrecv", source, MPI.ANY_SOURCE)
        receive = self._irecv("sendrecv", source, recvtag)
        send = self._send_object("sendrecv", self.inner.Isend, sendobj, dest, sendtag)
        got = receive.wait(status)
        send.wait()
        return got

    def Probe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        _, place = here()
        text, need = f"Probe(source={name_of(source)})", self.wants(source, tag)
        recorder.wait(lambda: self.inner.Iprobe(source, tag, status), text, place, need)
        return True

    probe = Probe

    def Iprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self.inner.Iprobe(source, tag, status)

    iprobe = Iprobe

    # --- new communicators ------------------------------------------------------------------------------------------

    def _made(self, call: str, make: Callable[[], MPI.Intracomm]) -> "TracedComm":
        """A communicator made from this one by all its ranks, with a name on which they agree."""
        self._meet(call)
        name = self.inner.bcast(f"{self.label}/{time.time_ns()}")
        comm = make()
        if comm == MPI.COMM_NULL:
            return comm
        places = comm.Get_group().Translate_ranks(None, self.Get_group())
        ranks = [self.world_ranks[place] for place in places]
        return type(self)(comm, ranks, f"{name}/{min(ranks)}")

    def Dup(self, info=None):
        return self._made("Dup", self.inner.Dup)

    def Clone(self):
        return self.Dup()

    def Split(self, color=0, key=0):
        return self._made("Split", lambda: self.inner.Split(color, key))

    def Create(self, group):
        return self._made("Create", lambda: self.inner.Create(group))
