"""Messages of a traced communicator: each is an event on both ranks, and each wait is polled."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.errors import MessageTruncated, NoSuchRank
from course_utils.trace.collectives import kind_of, size_of
from course_utils.trace.events import OBJECT
from course_utils.trace.memory import memory_checked
from course_utils.trace.pickles import pickled
from course_utils.trace.recorder import CodeLine, here, recorder
from course_utils.trace.requests import Finished, PersistentRequest, PickledReceive, TracedRequest
from course_utils.trace.wait_graph import Receive


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
    return [buf, MPI.BYTE] if _plain(buf) else buf


def check_whole(call: str, buf: Any, size: int) -> None:
    """Reject a message that ends in the middle of a number.

    Raises:
        ValueError: sender and receiver do not mean the same type.
    """
    if _plain(buf) and buf.itemsize and size % buf.itemsize:
        raise ValueError(
            f"{call}: the message has {size} bytes, not a whole number of {buf.dtype} of {buf.itemsize} bytes. "
            "Is the dtype the same on both sides?"
        )


@memory_checked
class PointToPoint:
    """Mixed into traced communicators.

    Attributes:
        inner: the plain communicator that carries the messages.
        world_ranks: for each rank that one can send to, its rank in the run, which is the one that events carry.
        members: the ranks, numbered as in the run, that may send on this communicator.
        label: its name in the books, the same on all its ranks.
        posted: receives of objects that have not taken a message yet, in the order in which they were posted.
    """

    inner: MPI.Comm
    world_ranks: list[int]
    members: list[int]
    label: str
    posted: list[PickledReceive]

    def Abort(self, errorcode=0):
        """In the place of MPI's, which ends all ranks: the others are told of it, and of the line.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"Abort({errorcode}): the program asked to end all ranks; they live on for your next cell")

    # --- sending ----------------------------------------------------------------------------------------------------

    def check_peer(self, call: str, rank: int, least: int = 0) -> None:
        """A clear line for a rank that does not exist. PROC_NULL and, for receives, ANY_SOURCE are allowed."""
        if rank != MPI.PROC_NULL and not least <= rank < len(self.world_ranks):
            raise NoSuchRank(f"{call}: there is no rank {rank}; the ranks are 0 to {len(self.world_ranks) - 1}")

    def _world(self, rank: int) -> int | None:
        return self.world_ranks[rank] if 0 <= rank < len(self.world_ranks) else None

    def _start_send(
        self, name: str, start: Callable, buf: Any, dest: int, tag: int, size: int, kind: str
    ) -> TracedRequest:
        self.check_peer(name, dest)
        line, place = here()
        began = time.perf_counter()
        request = start(buf, dest, tag)
        return self._under_way(request, began, name, dest, tag, size, kind, line, place)

    def _send(self, name: str, start: Callable, buf: Any, dest: int, tag: int, size: int, kind: str) -> None:
        """Send and wait; most sends are done at once, and need no request that can be waited for."""
        self.check_peer(name, dest)
        line, place = here()
        began = time.perf_counter()
        request = start(buf, dest, tag)
        if not request.Test():
            self._under_way(request, began, name, dest, tag, size, kind, line, place).wait()
        elif (peer := self._world(dest)) is not None:
            recorder.books.send(self.label, self.members, peer, tag)
            recorder.add(name, "send", began, time.perf_counter(), peer, tag, size, line, self.label, 0, kind)

    def _under_way(
        self,
        request: MPI.Request,
        began: float,
        name: str,
        dest: int,
        tag: int,
        size: int,
        kind: str,
        line: int | None,
        place: CodeLine,
    ) -> TracedRequest:
        """A send that has been started, and will be recorded when it is done."""
        peer, need = self._world(dest), None
        if peer is not None:
            need = recorder.books.send(self.label, self.members, peer, tag)

        def finished(end: float, _: MPI.Status | None) -> None:
            if peer is not None:
                recorder.add(name, "send", began, end, peer, tag, size, line, self.label, 0, kind)

        return TracedRequest.traced(request, f"{name}(dest={dest})", place, finished, need)

    def _send_buffer(self, name: str, start: Callable, buf: Any, dest: int, tag: int) -> None:
        self._send(name, start, buf, dest, tag, size_of(buf), kind_of(buf))

    def _start_buffer(self, name: str, start: Callable, buf: Any, dest: int, tag: int) -> TracedRequest:
        return self._start_send(name, start, buf, dest, tag, size_of(buf), kind_of(buf))

    def _send_later(self, name: str, start: Callable, buf: Any, dest: int, tag: int) -> TracedRequest:
        request = self._start_buffer(name, start, buf, dest, tag)
        request.uses(buf, None)
        return request

    def _send_object(self, name: str, start: Callable, obj: Any, dest: int, tag: int) -> None:
        data = pickled(obj)
        self._send(name, start, [data, MPI.BYTE], dest, tag, len(data), OBJECT)

    def _start_object(self, name: str, start: Callable, obj: Any, dest: int, tag: int) -> TracedRequest:
        data = pickled(obj)
        return self._start_send(name, start, [data, MPI.BYTE], dest, tag, len(data), OBJECT)

    def Send(self, buf, dest, tag=0):
        self._send_buffer("Send", self.inner.Isend, buf, dest, tag)

    def Ssend(self, buf, dest, tag=0):
        self._send_buffer("Ssend", self.inner.Issend, buf, dest, tag)

    def Isend(self, buf, dest, tag=0):
        return self._send_later("Isend", self.inner.Isend, buf, dest, tag)

    def Issend(self, buf, dest, tag=0):
        return self._send_later("Issend", self.inner.Issend, buf, dest, tag)

    def send(self, obj, dest, tag=0):
        self._send_object("send", self.inner.Isend, obj, dest, tag)

    def ssend(self, obj, dest, tag=0):
        self._send_object("ssend", self.inner.Issend, obj, dest, tag)

    def isend(self, obj, dest, tag=0):
        return self._start_object("isend", self.inner.Isend, obj, dest, tag)

    def issend(self, obj, dest, tag=0):
        return self._start_object("issend", self.inner.Issend, obj, dest, tag)

    def Bsend(self, buf, dest, tag=0):
        self._send_buffer("Bsend", self.inner.Ibsend, buf, dest, tag)

    def Rsend(self, buf, dest, tag=0):
        self._send_buffer("Rsend", self.inner.Irsend, buf, dest, tag)

    def Send_init(self, buf, dest, tag=0):
        start = self.inner.Isend
        return PersistentRequest("Send_init", lambda: self._send_later("Send_init", start, buf, dest, tag))

    def Ssend_init(self, buf, dest, tag=0):
        start = self.inner.Issend
        return PersistentRequest("Ssend_init", lambda: self._send_later("Ssend_init", start, buf, dest, tag))

    # --- receiving --------------------------------------------------------------------------------------------------

    def Recv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        self.check_peer("Recv", source, MPI.ANY_SOURCE)
        if source == MPI.PROC_NULL:
            return
        message, found, record = self._match("Recv", source, tag, kind_of(buf))
        room, size = size_of(buf), found.Get_count(MPI.BYTE)
        into = as_bytes(buf) if size <= room else [np.empty(size, np.uint8), MPI.BYTE]
        self._read("Recv", message, into, source, tag, status, record)
        record(time.perf_counter(), found)
        if size > room:
            raise MessageTruncated(
                f"Recv: the message from rank {found.source} has {size} bytes, the array for it has room for {room}. "
                "Are shape and dtype the same on both sides?"
            )
        check_whole("Recv", buf, size)

    def recv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        self.check_peer("recv", source, MPI.ANY_SOURCE)
        return self._irecv("recv", source, tag).wait(status)

    def Irecv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
        self.check_peer("Irecv", source, MPI.ANY_SOURCE)
        return self._start_receive("Irecv", buf, source, tag)

    def Recv_init(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
        self.check_peer("Recv_init", source, MPI.ANY_SOURCE)
        return PersistentRequest("Recv_init", lambda: self._start_receive("Recv_init", buf, source, tag))

    def irecv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
        self.check_peer("irecv", source, MPI.ANY_SOURCE)
        return self._irecv("irecv", source, tag)

    def wants(self, source: int, tag: int) -> Receive:
        """What a receive waits for."""
        wanted = None if tag == MPI.ANY_TAG else tag
        return recorder.books.receive(self.label, self.members, self._world(source), wanted)

    def _received(self, name: str, source: int, tag: int, began: float, line: int | None, kind: str = "") -> Finished:
        """What to record when a receive has completed, or was broken off."""

        def finished(end: float, status: MPI.Status | None) -> None:
            if source == MPI.PROC_NULL or (status is not None and status.Is_cancelled()):
                return
            sender, its_tag = (source, tag) if status is None else (status.source, status.tag)
            size = 0 if status is None else status.Get_count(MPI.BYTE)
            peer, shown = self._world(sender), None if its_tag == MPI.ANY_TAG else its_tag
            if status is not None:
                recorder.books.took(self.label, peer, its_tag)
            recorder.add(name, "recv", began, end, peer, shown, size, line, self.label, 0, kind)

        return finished

    def _match(self, name: str, source: int, tag: int, kind: str) -> tuple[MPI.Message, MPI.Status, Finished]:
        """Wait until a message has come and take it out of the queue; the third thing records that it was read."""
        line, place = here()
        status = MPI.Status()
        record = self._received(name, source, tag, time.perf_counter(), line, kind)
        look = self.inner.Improbe
        message: MPI.Message | None = None

        def arrived() -> bool:
            nonlocal message
            if self.posted:
                self.serve_posted()
            # A look in vain is what takes messages off the network, so the second look finds what has just come.
            message = look(source, tag, status) or look(source, tag, status)
            return message is not None

        if not arrived():
            try:
                recorder.wait(arrived, f"{name}(source={name_of(source)})", place, self.wants(source, tag))
            except KeyboardInterrupt:
                record(float("inf"), None)
                raise
        assert message is not None
        return message, status, record

    def _read(
        self,
        name: str,
        message: MPI.Message,
        into: Any,
        source: int,
        tag: int,
        status: MPI.Status | None,
        record: Finished,
    ) -> None:
        """Wait for the whole of a message whose beginning has come: over a slow link the rest takes its time."""
        rest = message.Irecv(into)
        if rest.Test(status):
            return
        try:
            text, need = f"{name}(source={name_of(source)})", self.wants(source, tag)
            recorder.wait(lambda: rest.Test(status), text, here()[1], need)
        except KeyboardInterrupt:
            record(float("inf"), None)
            raise

    def _start_receive(self, name: str, buf: Any, source: int, tag: int) -> TracedRequest:
        line, place = here()
        request = self.inner.Irecv(as_bytes(buf), source, tag)
        record = self._received(name, source, tag, time.perf_counter(), line, kind_of(buf))

        def finished(end: float, status: MPI.Status | None) -> None:
            record(end, status)
            if status is not None:
                check_whole(name, buf, status.Get_count(MPI.BYTE))

        need = None if source == MPI.PROC_NULL else self.wants(source, tag)
        traced = TracedRequest.traced(request, f"{name}(source={name_of(source)})", place, finished, need)
        traced.uses(None, buf)
        return traced

    def _irecv(self, name: str, source: int, tag: int) -> PickledReceive:
        line, place = here()
        began = time.perf_counter()
        text = f"{name}(source={name_of(source)})"
        record = self._received(name, source, tag, began, line, OBJECT)
        receive = PickledReceive(self, source, tag, text, place, record)
        self.posted.append(receive)
        return receive

    def serve_posted(self) -> None:
        """Give messages that have come to the receives that were posted first, as MPI's ordering demands."""
        if not self.posted:
            return
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
        self.check_peer("Sendrecv", source, MPI.ANY_SOURCE)
        receive = self._start_receive("Sendrecv", recvbuf, source, recvtag)
        send = self._start_buffer("Sendrecv", self.inner.Isend, sendbuf, dest, sendtag)
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
        self.check_peer("sendrecv", source, MPI.ANY_SOURCE)
        receive = self._irecv("sendrecv", source, recvtag)
        send = self._start_object("sendrecv", self.inner.Isend, sendobj, dest, sendtag)
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
        return self._looked("Iprobe", source, tag, self.inner.Iprobe(source, tag, status))

    iprobe = Iprobe

    def _looked(self, name: str, source: int, tag: int, found: Any) -> Any:
        """What a look for a message has found; where that is nothing, the books say so."""
        if not found and source != MPI.PROC_NULL:
            recorder.tested_in_vain(f"{name}(source={name_of(source)})", self.wants(source, tag))
        return found

    # A matched probe takes the message out of the queue; what is left to do is to read it, which needs nobody else.

    def Mprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._probed("Mprobe", self.inner.Improbe, source, tag, status)

    def mprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._probed("mprobe", self.inner.improbe, source, tag, status)

    def Improbe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._probed_once("Improbe", self.inner.Improbe, source, tag, status)

    def improbe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._probed_once("improbe", self.inner.improbe, source, tag, status)

    def _probed(self, name: str, look: Callable, source: int, tag: int, status: MPI.Status | None) -> MPI.Message:
        line, place = here()
        began, status = time.perf_counter(), status or MPI.Status()
        found: MPI.Message | None = None

        def arrived() -> bool:
            nonlocal found
            found = look(source, tag, status)
            return found is not None

        recorder.wait(arrived, f"{name}(source={name_of(source)})", place, self.wants(source, tag))
        self._received(name, source, tag, began, line)(time.perf_counter(), status)
        assert found is not None
        return found

    def _probed_once(
        self, name: str, look: Callable, source: int, tag: int, status: MPI.Status | None
    ) -> MPI.Message | None:
        line, _ = here()
        began, status = time.perf_counter(), status or MPI.Status()
        message = self._looked(name, source, tag, look(source, tag, status))
        if message is not None:
            self._received(name, source, tag, began, line)(time.perf_counter(), status)
        return message
