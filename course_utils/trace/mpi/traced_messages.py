"""Messages of a traced communicator: each is an event on both ranks, and each wait is polled."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from course_utils.errors import MessageTruncated, NoSuchRank
from course_utils.trace.call_texts import receive_text, send_text
from course_utils.trace.events import OBJECT, BufferLayout
from course_utils.trace.mpi.call_errors import note_call
from course_utils.trace.mpi.collectives import size_of
from course_utils.trace.mpi.memory import check_buffers
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.mpi.requests import (
    OnCompletion,
    PersistentRequest,
    PickledReceive,
    SendAndReceive,
    TracedRequest,
)
from course_utils.trace.mpi.type_signatures import message_layouts, unit_of
from course_utils.trace.recorder import SourceLine, current_line, recorder
from course_utils.trace.wait_graph import Receive, Send


def _is_plain(buf: Any) -> bool:
    """A contiguous array of numbers, whose bytes can be received as they come?"""
    return isinstance(buf, np.ndarray) and buf.flags.c_contiguous and buf.flags.writeable


def as_bytes(buf: Any) -> Any:
    """The buffer as bytes, where that is possible.

    MPICH ends all ranks when a message does not fill a whole number of the array's elements; bytes always fit.
    """
    return [buf, MPI.BYTE] if _is_plain(buf) else buf


def check_whole_numbers(call: str, buf: Any, size: int) -> None:
    """Reject a message that ends in the middle of a number.

    Raises:
        ValueError: sender and receiver do not mean the same type.
    """
    if _is_plain(buf) and buf.itemsize and size % buf.itemsize:
        raise ValueError(
            f"{call}: the message has {size} bytes, not a whole number of {buf.dtype} of {buf.itemsize} bytes. "
            "Is the dtype the same on both sides?"
        )


class Outgoing(NamedTuple):
    """A message before it is sent; `size` in bytes, `kind` and `layouts` as `Event.holds` and `Event.layouts`."""

    name: str
    buf: Any
    dest: int
    tag: int
    size: int
    kind: str
    layouts: tuple[BufferLayout | None, ...] = ()


def buffer_message(name: str, buf: Any, dest: int, tag: int) -> Outgoing:
    """A message of what mpi4py takes as a buffer, sent by the call `name`."""
    return Outgoing(name, buf, dest, tag, size_of(buf), unit_of(buf), message_layouts(buf))


def object_message(name: str, obj: Any, dest: int, tag: int) -> Outgoing:
    """A message of a Python object, sent by the call `name`."""
    data = pickle_object(obj)
    return Outgoing(name, [data, MPI.BYTE], dest, tag, len(data), OBJECT)


class Started(NamedTuple):
    """A message whose send has begun, with its time and the learner's line."""

    message: Outgoing
    request: MPI.Request
    began: float
    line: int | None
    source_line: SourceLine


@check_buffers
class PointToPoint:
    """Mixed into traced communicators.

    Attributes:
        inner: the plain communicator that carries the messages.
        world_ranks: for each rank that one can send to, its rank in the run, which is the one that events carry.
        members: the ranks, numbered as in the run, that may send on this communicator.
        label: its name in the ledger, the same on all its ranks.
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

    def _world_rank(self, rank: int) -> int | None:
        return self.world_ranks[rank] if 0 <= rank < len(self.world_ranks) else None

    def _receive_text(self, name: str, source: int, tag: int) -> str:
        """A receive in words, "recv(source=1, tag=4)"."""
        any_source, any_tag = source == MPI.ANY_SOURCE, tag == MPI.ANY_TAG
        own = None if any_source else source, None if any_tag else tag
        return receive_text(name, *own, self._world_rank(source))

    def _start(self, start: Callable, message: Outgoing) -> Started:
        self.check_peer(message.name, message.dest)
        line, source_line = current_line()
        began = time.perf_counter()
        try:
            return Started(message, start(message.buf, message.dest, message.tag), began, line, source_line)
        except Exception as error:
            note_call(error, message.name)
            raise

    def _record_send(self, started: Started, end: float) -> None:
        name, _, dest, tag, size, kind, layouts = started.message
        if (peer := self._world_rank(dest)) is not None:
            more = size, started.line, self.label, 0, kind, None, layouts
            recorder.add(name, "send", started.began, end, peer, tag, *more)

    def _enter_send(self, message: Outgoing) -> Send | None:
        peer = self._world_rank(message.dest)
        return None if peer is None else recorder.ledger.add_send(self.label, self.members, peer, message.tag)

    def _wrap_send(self, started: Started) -> TracedRequest:
        """A send that has been started, and will be recorded when it is done."""
        message = started.message
        return TracedRequest.wrap(
            started.request,
            send_text(message.name, message.dest, message.tag, self._world_rank(message.dest)),
            started.source_line,
            lambda end, _: self._record_send(started, end),
            self._enter_send(message),
        )

    def _send(self, start: Callable, message: Outgoing) -> None:
        """Send and wait; most sends are done at once, and need no request that can be waited for."""
        started = self._start(start, message)
        if started.request.Test():
            self._enter_send(message)
            self._record_send(started, time.perf_counter())
        else:
            self._wrap_send(started).wait()

    def _isend(self, start: Callable, message: Outgoing) -> TracedRequest:
        return self._wrap_send(self._start(start, message))

    def _isend_buffer(self, name: str, start: Callable, buf: Any, dest: int, tag: int) -> TracedRequest:
        request = self._isend(start, buffer_message(name, buf, dest, tag))
        request.track_buffers(buf, None)
        return request

    def Send(self, buf, dest, tag=0):
        self._send(self.inner.Isend, buffer_message("Send", buf, dest, tag))

    def Ssend(self, buf, dest, tag=0):
        self._send(self.inner.Issend, buffer_message("Ssend", buf, dest, tag))

    def Isend(self, buf, dest, tag=0):
        return self._isend_buffer("Isend", self.inner.Isend, buf, dest, tag)

    def Issend(self, buf, dest, tag=0):
        return self._isend_buffer("Issend", self.inner.Issend, buf, dest, tag)

    def send(self, obj, dest, tag=0):
        self._send(self.inner.Isend, object_message("send", obj, dest, tag))

    def ssend(self, obj, dest, tag=0):
        self._send(self.inner.Issend, object_message("ssend", obj, dest, tag))

    def isend(self, obj, dest, tag=0):
        return self._isend(self.inner.Isend, object_message("isend", obj, dest, tag))

    def issend(self, obj, dest, tag=0):
        return self._isend(self.inner.Issend, object_message("issend", obj, dest, tag))

    def Bsend(self, buf, dest, tag=0):
        self._send(self.inner.Ibsend, buffer_message("Bsend", buf, dest, tag))

    def Rsend(self, buf, dest, tag=0):
        self._send(self.inner.Irsend, buffer_message("Rsend", buf, dest, tag))

    def Send_init(self, buf, dest, tag=0):
        start = self.inner.Isend
        return PersistentRequest("Send_init", lambda: self._isend_buffer("Send_init", start, buf, dest, tag))

    def Ssend_init(self, buf, dest, tag=0):
        start = self.inner.Issend
        return PersistentRequest("Ssend_init", lambda: self._isend_buffer("Ssend_init", start, buf, dest, tag))

    # --- receiving --------------------------------------------------------------------------------------------------

    def Recv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        self.check_peer("Recv", source, MPI.ANY_SOURCE)
        if source == MPI.PROC_NULL:
            return
        message, found, record = self._match("Recv", source, tag, unit_of(buf), message_layouts(buf))
        room, size = size_of(buf), found.Get_count(MPI.BYTE)
        into = as_bytes(buf) if size <= room else [np.empty(size, np.uint8), MPI.BYTE]
        self._read("Recv", message, into, source, tag, status, record)
        record(time.perf_counter(), found)
        if size > room:
            raise MessageTruncated(
                f"Recv: the message from rank {found.source} has {size} bytes, the array for it has room for {room}. "
                "Are shape and dtype the same on both sides?"
            )
        check_whole_numbers("Recv", buf, size)

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

    def receive_need(self, source: int, tag: int) -> Receive:
        """What a receive waits for."""
        wanted = None if tag == MPI.ANY_TAG else tag
        return recorder.ledger.add_receive(self.label, self.members, self._world_rank(source), wanted)

    def _on_receipt(
        self,
        name: str,
        source: int,
        tag: int,
        began: float,
        line: int | None,
        kind: str = "",
        layouts: tuple[BufferLayout | None, ...] = (),
    ) -> OnCompletion:
        """What to record when a receive has completed, or was broken off."""

        def on_completion(end: float, status: MPI.Status | None) -> None:
            if source == MPI.PROC_NULL or (status is not None and status.Is_cancelled()):
                return
            sender, its_tag = (source, tag) if status is None else (status.source, status.tag)
            size = 0 if status is None else status.Get_count(MPI.BYTE)
            peer, shown = self._world_rank(sender), None if its_tag == MPI.ANY_TAG else its_tag
            if status is not None:
                recorder.ledger.add_received(self.label, peer, its_tag)
            recorder.add(name, "recv", began, end, peer, shown, size, line, self.label, 0, kind, None, layouts)

        return on_completion

    def _match(
        self, name: str, source: int, tag: int, kind: str, layouts: tuple[BufferLayout | None, ...]
    ) -> tuple[MPI.Message, MPI.Status, OnCompletion]:
        """Wait until a message has come and take it out of the queue; the third thing records that it was read."""
        line, source_line = current_line()
        status = MPI.Status()
        record = self._on_receipt(name, source, tag, time.perf_counter(), line, kind, layouts)
        probe = self.inner.Improbe
        message: MPI.Message | None = None

        def arrived() -> bool:
            nonlocal message
            if self.posted:
                self.match_posted()
            # A look in vain is what takes messages off the network, so the second look finds what has just come.
            message = probe(source, tag, status) or probe(source, tag, status)
            return message is not None

        if not arrived():
            try:
                recorder.wait(
                    arrived, self._receive_text(name, source, tag), source_line, self.receive_need(source, tag)
                )
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
        record: OnCompletion,
    ) -> None:
        """Wait for the whole of a message whose beginning has come: over a slow link the rest takes its time."""
        rest = message.Irecv(into)
        if rest.Test(status):
            return
        try:
            text, need = self._receive_text(name, source, tag), self.receive_need(source, tag)
            recorder.wait(lambda: rest.Test(status), text, current_line()[1], need)
        except KeyboardInterrupt:
            record(float("inf"), None)
            raise

    def _start_receive(self, name: str, buf: Any, source: int, tag: int) -> TracedRequest:
        line, source_line = current_line()
        request = self.inner.Irecv(as_bytes(buf), source, tag)
        record = self._on_receipt(name, source, tag, time.perf_counter(), line, unit_of(buf), message_layouts(buf))

        def on_completion(end: float, status: MPI.Status | None) -> None:
            record(end, status)
            if status is not None:
                check_whole_numbers(name, buf, status.Get_count(MPI.BYTE))

        need = None if source == MPI.PROC_NULL else self.receive_need(source, tag)
        request = TracedRequest.wrap(request, self._receive_text(name, source, tag), source_line, on_completion, need)
        request.track_buffers(None, buf)
        return request

    def _irecv(self, name: str, source: int, tag: int) -> PickledReceive:
        line, source_line = current_line()
        began = time.perf_counter()
        text = self._receive_text(name, source, tag)
        record = self._on_receipt(name, source, tag, began, line, OBJECT)
        receive = PickledReceive(self, source, tag, text, source_line, record)
        self.posted.append(receive)
        return receive

    def match_posted(self) -> None:
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
        send = self._isend(self.inner.Isend, buffer_message("Sendrecv", sendbuf, dest, sendtag))
        receive.wait_polling(status)
        send.wait()

    def Isendrecv(
        self,
        sendbuf,
        dest,
        sendtag=0,
        recvbuf=None,
        source=MPI.ANY_SOURCE,
        recvtag=MPI.ANY_TAG,
    ):
        self.check_peer("Isendrecv", source, MPI.ANY_SOURCE)
        self.check_peer("Isendrecv", dest)
        receive = self._start_receive("Isendrecv", recvbuf, source, recvtag)
        send = self._isend_buffer("Isendrecv", self.inner.Isend, sendbuf, dest, sendtag)
        return SendAndReceive("Isendrecv", receive, send)

    def Isendrecv_replace(self, buf, dest, sendtag=0, source=MPI.ANY_SOURCE, recvtag=MPI.ANY_TAG):
        return self.Isendrecv(np.array(buf), dest, sendtag, buf, source, recvtag)

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
        send = self._isend(self.inner.Isend, object_message("sendrecv", sendobj, dest, sendtag))
        got = receive.wait(status)
        send.wait()
        return got

    def Probe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        _, source_line = current_line()
        text, need = self._receive_text("Probe", source, tag), self.receive_need(source, tag)
        recorder.wait(lambda: self.inner.Iprobe(source, tag, status), text, source_line, need)
        return True

    probe = Probe

    def Iprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._note_probe("Iprobe", source, tag, self.inner.Iprobe(source, tag, status))

    iprobe = Iprobe

    def _note_probe(self, name: str, source: int, tag: int, found: Any) -> Any:
        """What a look for a message has found; where that is nothing, the ledger says so."""
        if not found and source != MPI.PROC_NULL:
            recorder.note_failed_test(self._receive_text(name, source, tag), self.receive_need(source, tag))
        return found

    # A matched probe takes the message out of the queue; what is left to do is to read it, which needs nobody else.

    def Mprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._matched_probe("Mprobe", self.inner.Improbe, source, tag, status)

    def mprobe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._matched_probe("mprobe", self.inner.improbe, source, tag, status)

    def Improbe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._matched_probe_once("Improbe", self.inner.Improbe, source, tag, status)

    def improbe(self, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
        return self._matched_probe_once("improbe", self.inner.improbe, source, tag, status)

    def _matched_probe(
        self, name: str, probe: Callable, source: int, tag: int, status: MPI.Status | None
    ) -> MPI.Message:
        line, source_line = current_line()
        began, status = time.perf_counter(), status or MPI.Status()
        found: MPI.Message | None = None

        def arrived() -> bool:
            nonlocal found
            found = probe(source, tag, status)
            return found is not None

        recorder.wait(arrived, self._receive_text(name, source, tag), source_line, self.receive_need(source, tag))
        self._on_receipt(name, source, tag, began, line)(time.perf_counter(), status)
        assert found is not None
        return found

    def _matched_probe_once(
        self, name: str, probe: Callable, source: int, tag: int, status: MPI.Status | None
    ) -> MPI.Message | None:
        line, _ = current_line()
        began, status = time.perf_counter(), status or MPI.Status()
        message = self._note_probe(name, source, tag, probe(source, tag, status))
        if message is not None:
            self._on_receipt(name, source, tag, began, line)(time.perf_counter(), status)
        return message
