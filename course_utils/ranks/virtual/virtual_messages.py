"""Messages from one virtual rank to another: sends, receives, both at once, and looking ahead.

Every message is copied when it is sent, as MPI does with short ones: no send waits for its receiver, but for `Ssend`.
What would hang with long messages is told as luck after the run.
"""

import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.ranks.virtual.buffers import copy_received, kind_of, numbers
from course_utils.ranks.virtual.rank_in_communicator import RankInCommunicator
from course_utils.ranks.virtual.virtual_mpi import (
    ANY_SOURCE,
    ANY_TAG,
    PROC_NULL,
    MPIException,
    Status,
    VirtualRanksCannot,
    check_tag,
)
from course_utils.ranks.virtual.virtual_persistent import MatchedMessage, VirtualPersistentRequest
from course_utils.ranks.virtual.virtual_requests import (
    FromNobody,
    ReceiveRequest,
    Request,
    SynchronousSend,
    VirtualSendAndReceive,
    from_nobody,
    record_nothing,
    status_of,
)  # fmt: skip
from course_utils.ranks.virtual.virtual_time import PostedReceive, RunIsOver, VirtualMessage
from course_utils.trace import call_texts
from course_utils.trace.events import OBJECT
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.recorder import current_line
from course_utils.trace.wait_graph import Message, Receive, Send


class VirtualMessages(RankInCommunicator):
    """Messages between two ranks of a communicator, under mpi4py's names."""

    def _send_text(self, name: str, dest: int, tag: int) -> str:
        """A send in words, "Ssend(dest=1, tag=4)"."""
        return call_texts.send_text(name, dest, tag, self._number_in_run(dest))

    def _receive_text(self, name: str, source: int | None, tag: int | None) -> str:
        """A receive in words, "recv(source=1, tag=4)"."""
        any_source, any_tag = source in (None, ANY_SOURCE), tag in (None, ANY_TAG)
        own = None if any_source else source, None if any_tag else tag
        return call_texts.receive_text(name, *own, self._number_in_run(source))

    def _number_in_run(self, rank: int | None) -> int | None:
        return self.world_ranks[rank] if rank is not None and 0 <= rank < self.size else None

    # --- sending ----------------------------------------------------------------------------------------------------

    def _hand_over(
        self, name: str, data: Any, size: int, kind: str, dest: int, tag: int, done: bool = True
    ) -> VirtualMessage | None:
        """Send; `done` where the event ends here too."""
        self.check_peer(name, dest)
        if dest == PROC_NULL:
            return None
        check_tag(name, tag)
        me, scheduler = self.me, self.scheduler
        peer = self.world_ranks[dest]
        if self._scale != 1:
            size = round(size * self._scale)
        began = self.moment()
        message = scheduler.send(me, self.label, self.rank, peer, tag, data, size, kind)
        if self._records:
            if done:
                self._add_event(name, "send", began, self.moment(), peer, tag, size, 0, kind)
        elif not self.traced:
            me.sent_bytes -= size
            me.sent_messages -= 1
        return message

    def _start(self, name: str, data: Any, size: int, kind: str, dest: int, tag: int) -> Request:
        began, line, position = self.moment(), current_line()[0] if self._records else None, None
        message = self._hand_over(name, data, size, kind, dest, tag, done=False)
        on_completion = record_nothing
        if self._records and message is not None:
            position = self._reserve_event()
            peer = self.world_ranks[dest]

            def on_completion(end: float, status: Any) -> None:
                more = peer, tag, message.nbytes, 0, kind
                self._add_event(name, "send", began, end, *more, line=line, position=position)

        text = self._send_text(name, dest, tag)
        if message is None:
            return Request(self, text, on_completion, None)
        if name not in ("Issend", "issend", "Ssend_init"):
            request = Request(self, text, on_completion, None)
        else:
            need = Send(Message(self.label, self.world_ranks[dest], tag))
            receiver = self.scheduler.ranks[self.world_ranks[dest]]
            request = SynchronousSend(self, text, on_completion, need).complete_with(message, receiver)
        request.sends = message.nbytes
        return request

    def _send_buffer(self, name: str, start: Any, buf: Any, dest: int, tag: int) -> None:
        array = numbers(buf)
        kind = kind_of(buf) if self._records else ""
        message = self._hand_over(name, array.copy(), array.nbytes, kind, dest, tag)
        if name == "Ssend" and message is not None:
            self._wait_until_taken(name, message, dest, tag)

    def _start_buffer(self, name: str, start: Any, buf: Any, dest: int, tag: int) -> Request:
        array = numbers(buf)
        return self._start(name, array.copy(), array.nbytes, kind_of(buf), dest, tag)

    def _wait_until_taken(self, name: str, message: VirtualMessage, dest: int, tag: int) -> None:
        need = Send(Message(self.label, self.world_ranks[dest], tag))
        request = SynchronousSend(self, self._send_text(name, dest, tag), None, need)
        request.complete_with(message, self.scheduler.ranks[self.world_ranks[dest]]).Wait()

    def _send_object(self, name: str, obj: Any, dest: int, tag: int) -> None:
        data = pickle_object(obj)
        message = self._hand_over(name, data, len(data), OBJECT, dest, tag)
        if name == "ssend" and message is not None:
            self._wait_until_taken(name, message, dest, tag)

    def _start_object(self, name: str, obj: Any, dest: int, tag: int) -> Request:
        data = pickle_object(obj)
        return self._start(name, data, len(data), OBJECT, dest, tag)

    def Send(self, buf, dest, tag=0):
        self._send_buffer("Send", None, buf, dest, tag)

    def _check_attached(self, name: str) -> None:
        if self.me.attached is None:
            raise MPIException(f"{name}: no buffer is attached; call MPI.Attach_buffer first")

    def Bsend(self, buf, dest, tag=0):
        self._check_attached("Bsend")
        self._send_buffer("Bsend", None, buf, dest, tag)

    def Ibsend(self, buf, dest, tag=0):
        self._check_attached("Ibsend")
        return self._start_buffer("Ibsend", None, buf, dest, tag)

    def Irsend(self, buf, dest, tag=0):
        return self._start_buffer("Irsend", None, buf, dest, tag)

    def bsend(self, obj, dest, tag=0):
        self._check_attached("bsend")
        self._send_object("bsend", obj, dest, tag)

    def ibsend(self, obj, dest, tag=0):
        self._check_attached("ibsend")
        return self._start_object("ibsend", obj, dest, tag)

    def _persistent_send(self, name: str, buf: Any, dest: int, tag: int) -> VirtualPersistentRequest:
        self.check_peer(name, dest)
        begin = functools.partial(self._start_buffer, name, None, buf, dest, tag)
        return VirtualPersistentRequest(self, self._send_text(name, dest, tag), begin)

    def Send_init(self, buf, dest, tag=0):
        return self._persistent_send("Send_init", buf, dest, tag)

    def Ssend_init(self, buf, dest, tag=0):
        return self._persistent_send("Ssend_init", buf, dest, tag)

    def Rsend_init(self, buf, dest, tag=0):
        return self._persistent_send("Rsend_init", buf, dest, tag)

    def Bsend_init(self, buf, dest, tag=0):
        self._check_attached("Bsend_init")
        return self._persistent_send("Bsend_init", buf, dest, tag)

    def Recv_init(self, buf, source=ANY_SOURCE, tag=ANY_TAG):
        self.check_peer("Recv_init", source, ANY_SOURCE)
        begin = functools.partial(self._start_receive, "Recv_init", buf, source, tag)
        return VirtualPersistentRequest(self, self._receive_text("Recv_init", source, tag), begin)

    def Ssend(self, buf, dest, tag=0):
        self._send_buffer("Ssend", None, buf, dest, tag)

    def Rsend(self, buf, dest, tag=0):
        self._send_buffer("Rsend", None, buf, dest, tag)

    def Isend(self, buf, dest, tag=0):
        return self._start_buffer("Isend", None, buf, dest, tag)

    def Issend(self, buf, dest, tag=0):
        return self._start_buffer("Issend", None, buf, dest, tag)

    def send(self, obj, dest, tag=0):
        self._send_object("send", obj, dest, tag)

    def ssend(self, obj, dest, tag=0):
        self._send_object("ssend", obj, dest, tag)

    def isend(self, obj, dest, tag=0):
        return self._start_object("isend", obj, dest, tag)

    def issend(self, obj, dest, tag=0):
        return self._start_object("issend", obj, dest, tag)

    # --- receiving --------------------------------------------------------------------------------------------------

    def posted_receive(self, source: int, tag: int) -> PostedReceive:
        """A receive, with what it waits for in words of the graph of waits."""
        known = self._needs.get((source, tag))
        if known is None:
            sender, wanted_tag = None if source == ANY_SOURCE else source, None if tag == ANY_TAG else tag
            need = Receive(Message(self.label, None if sender is None else self.world_ranks[sender], wanted_tag))
            known = self._needs[source, tag] = self.label, sender, wanted_tag, need
        return PostedReceive(*known)

    def _post(self, name: str, source: int, tag: int) -> PostedReceive:
        self.check_peer(name, source, ANY_SOURCE)
        check_tag(name, tag, any_too=True)
        receive = self.posted_receive(source, tag)
        self.scheduler.post(self.me, receive)
        return receive

    def _receive(self, name: str, source: int, tag: int, kind: str | None, status: Status | None) -> VirtualMessage:
        """Receive: wait, and record."""
        began, position = self.moment(), self._reserve_event()
        receive = self._post(name, source, tag)
        return self._finish_receive(name, receive, began, position, source, kind, status)

    def _finish_receive(self, name, receive, began, position, source, kind, status) -> VirtualMessage:
        me = self.me
        try:
            message = self.scheduler.receive(me, receive, self._receive_text(name, receive.source, receive.tag))
        except RunIsOver:
            self._record_unfinished(name, receive, began, kind, position=position)
            raise
        if self._records:
            peer = self.world_ranks[message.source]
            self._add_event(
                name, "recv", began, self.moment(), peer, message.tag, message.nbytes, 0, kind, position=position
            )
        if status is not None:
            status.take(status_of(message))
        return message

    def _record_unfinished(
        self, name: str, receive: PostedReceive, began: float, kind: str | None, **more: Any
    ) -> None:
        """Record a receive that was broken off."""
        if self._records:
            peer = None if receive.source is None else self.world_ranks[receive.source]
            self._add_event(name, "recv", began, math.inf, peer, receive.tag, 0, 0, kind, **more)

    def _start_receive(self, name: str, buf: Any, source: int, tag: int) -> Request:
        return self._begin_receive(
            name, source, tag, lambda message: copy_received(name, buf, message.data, message.source), kind_of(buf)
        )

    def _irecv(self, name: str, source: int, tag: int) -> Request:
        return self._begin_receive(name, source, tag, None, OBJECT)

    def _begin_receive(self, name: str, source: int, tag: int, take: Callable | None, kind: str) -> Request:
        text = self._receive_text(name, source, tag)
        if source == PROC_NULL:
            return FromNobody(self, text, None, None)
        began, position = self.moment(), self._reserve_event()
        return self._request_for(text, self._post(name, source, tag), name, take, kind, began, position)

    def _request_of(
        self, name: str, receive: PostedReceive, source: int, tag: int, buf: Any, position: int | None
    ) -> ReceiveRequest:
        """The request of a receive into a place for numbers, or of an object where `buf` is None."""

        def take_numbers(message: VirtualMessage) -> None:
            copy_received(name, buf, message.data, message.source)

        take, kind = (None, OBJECT) if buf is None else (take_numbers, kind_of(buf))
        text = self._receive_text(name, source, tag)
        return self._request_for(text, receive, name, take, kind, self.moment(), position)

    def _request_for(
        self,
        text: str,
        receive: PostedReceive,
        name: str,
        take: Callable | None,
        kind: str,
        began: float,
        position: int | None,
    ) -> ReceiveRequest:
        line = current_line()[0] if self._records else None

        def on_completion(end: float, status: Status | None) -> None:
            message = receive.message
            if self._records and message is None:
                self._record_unfinished(name, receive, began, kind, line=line, position=position)
            elif self._records and message is not None:
                more = self.world_ranks[message.source], message.tag, message.nbytes, 0, kind
                self._add_event(name, "recv", began, end, *more, line=line, position=position)

        take = take or functools.partial(_unpickled, text)
        return ReceiveRequest(self, text, receive, take, on_completion)

    def Recv(self, buf, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        if source == PROC_NULL:
            _take_from_nobody(status)
            return
        message = self._receive("Recv", source, tag, kind_of(buf), status)
        copy_received("Recv", buf, message.data, message.source)

    def recv(self, buf=None, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        return self._irecv("recv", source, tag).wait(status)

    def Irecv(self, buf, source=ANY_SOURCE, tag=ANY_TAG):
        return self._start_receive("Irecv", buf, source, tag)

    def irecv(self, buf=None, source=ANY_SOURCE, tag=ANY_TAG):
        return self._irecv("irecv", source, tag)

    # --- both, and looking ahead ------------------------------------------------------------------------------------

    def Sendrecv(self, sendbuf, dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        if source == PROC_NULL:
            self._send_buffer("Sendrecv", None, sendbuf, dest, sendtag)
            _take_from_nobody(status)
            return
        began, position = self.moment(), self._reserve_event()
        receive = self._post("Sendrecv", source, recvtag)
        self._send_buffer("Sendrecv", None, sendbuf, dest, sendtag)
        kind = kind_of(recvbuf) if self._records else ""
        message = self._finish_receive("Sendrecv", receive, began, position, source, kind, status)
        copy_received("Sendrecv", recvbuf, message.data, message.source)

    def Sendrecv_replace(self, buf, dest, sendtag=0, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        self.Sendrecv(np.array(buf), dest, sendtag, buf, source, recvtag, status)

    def Isendrecv(self, sendbuf, dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG):
        self.check_peer("Isendrecv", dest)
        receive = self._start_receive("Isendrecv", recvbuf, source, recvtag)
        return VirtualSendAndReceive(receive, self._start_buffer("Isendrecv", None, sendbuf, dest, sendtag))

    def Isendrecv_replace(self, buf, dest, sendtag=0, source=ANY_SOURCE, recvtag=ANY_TAG):
        return self.Isendrecv(np.array(buf), dest, sendtag, buf, source, recvtag)

    def sendrecv(self, sendobj, dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        receive = self._irecv("sendrecv", source, recvtag)
        self._send_object("sendrecv", sendobj, dest, sendtag)
        return receive.wait(status)

    def Probe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        if source == PROC_NULL:
            _take_from_nobody(status)
            return True
        receive = self.posted_receive(source, tag)
        message = self.scheduler.first_to_come(self.me, receive, self._receive_text("Probe", source, tag))
        if status is not None:
            status.take(status_of(message))
        return True

    def Iprobe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        if source == PROC_NULL:
            _take_from_nobody(status)
            return True
        receive, me = self.posted_receive(source, tag), self.me

        def come() -> bool:
            message = self.scheduler.unassigned(me, receive)
            return message is not None and message.arrival <= me.clock

        found = self.scheduler.test(me, come, self._receive_text("Iprobe", source, tag), receive.need)
        if found and status is not None and (message := self.scheduler.unassigned(me, receive)):
            status.take(status_of(message))
        return found

    probe, iprobe = Probe, Iprobe

    def _matched(self, receive: PostedReceive, message: VirtualMessage, status: Status | None) -> MatchedMessage:
        """Take a message out of reach of other receives."""
        self.scheduler.claim(self.me, receive, message)
        if status is not None:
            status.take(status_of(message))

        def start(name: str, buf: Any) -> Request:
            return self._request_of(name, receive, message.source, message.tag, buf, self._reserve_event())

        def take(name: str, buf: Any, status: Status | None) -> Any:
            return start(name, buf).wait(status)

        return MatchedMessage(take, start)

    def Mprobe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        _reject_nobody("Mprobe", source)
        receive = self.posted_receive(source, tag)
        message = self.scheduler.first_to_come(self.me, receive, self._receive_text("Mprobe", source, tag))
        return self._matched(receive, message, status)

    def Improbe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        _reject_nobody("Improbe", source)
        if not self.Iprobe(source, tag):
            return None
        receive = self.posted_receive(source, tag)
        message = self.scheduler.unassigned(self.me, receive)
        assert message is not None
        return self._matched(receive, message, status)

    mprobe, improbe = Mprobe, Improbe


def _take_from_nobody(status: Status | None) -> None:
    """What a receive from PROC_NULL says."""
    if status is not None:
        status.take(from_nobody())


def _reject_nobody(name: str, source: int) -> None:
    if source == PROC_NULL:
        raise VirtualRanksCannot(f"Virtual ranks cannot {name} from MPI.PROC_NULL.")


def _unpickled(text: str, message: VirtualMessage) -> Any:
    try:
        return pickle.loads(message.data)
    except Exception as error:
        raise ValueError(
            f"{text}: the message from rank {message.source} is not a pickled object. "
            "Send goes with Recv, send with recv."
        ) from error
