"""A communicator of virtual ranks: mpi4py's names for what the course uses, on the scheduler's messages.

Every message is copied when it is sent, as MPI does with short ones: no send waits for its receiver, but for `Ssend`.
What would hang with long messages is told as luck after the run.

A collective has no algorithm that could be seen. It begins when the last rank has come, ends on all ranks at once,
and costs what a usual algorithm would, on the way between the communicator's first and last rank while nothing else is
under way. P ranks, α + βn for a message of n bytes, γ a byte for an operation:

| | seconds | algorithm |
|---|---|---|
| Barrier | ⌈log₂ P⌉ α | dissemination |
| Bcast, Reduce | ⌈log₂ P⌉ (α + βn + γn) | binomial tree; γ for Reduce alone |
| Scatter, Gather | ⌈log₂ P⌉ α + (P − 1) βn | binomial tree; n bytes for each rank |
| Allgather, Reduce_scatter | ⌈log₂ P⌉ α + (P − 1) (β + γ) n | recursive doubling, halving; n bytes for each rank |
| Allreduce, Scan | ⌈log₂ P⌉ (α + βn + γn), or 2 ⌈log₂ P⌉ α + (P − 1)/P (2β + γ) n | doubling, or halving-doubling |
| Alltoall | (P − 1) (α + βn) | pairwise; n bytes for each pair |

Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in MPICH", section 4.
"""

import functools
import math
import operator
import pickle
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from course_utils.ranks.virtual import stand_in
from course_utils.ranks.virtual.stand_in import ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED, Op, Status
from course_utils.ranks.virtual.virtual_time import Gathering, Scheduler, Sent, VirtualRank, Wanted
from course_utils.trace.events import BYTES, OBJECT, Event
from course_utils.trace.pickles import pickled
from course_utils.trace.recorder import here
from course_utils.trace.waiting import Message, Need, Receive, Send, Some

_name_of = functools.cache(str)


def numbers(buf: Any) -> np.ndarray:
    """What mpi4py takes as a buffer, as an array of one dimension on the same memory.

    Raises:
        ValueError: it is not contiguous, or no buffer.
    """
    if type(buf) is not np.ndarray:
        return _numbers_of(buf)
    if buf.ndim == 1 and buf.flags.c_contiguous:
        return buf
    if buf.flags.c_contiguous:
        return buf.reshape(-1)
    if buf.flags.f_contiguous:
        return buf.reshape(-1, order="F")
    raise ValueError("ndarray is not contiguous")


def _numbers_of(buf: Any) -> np.ndarray:
    if isinstance(buf, (list, tuple)):
        if buf[0] is None:
            return np.empty(0, np.uint8)
        array = numbers(buf[0])
        count = next((part for part in buf[1:] if isinstance(part, int) and not isinstance(part, bool)), None)
        return array if count is None else array[:count]
    if buf is None:
        return np.empty(0, np.uint8)
    if isinstance(buf, np.ndarray):
        return numbers(buf.view(np.ndarray))
    if hasattr(buf, "element_size"):
        return numbers(buf.detach().numpy())
    return np.frombuffer(buf, np.uint8)


def kind_of(buf: Any) -> str:
    """The type of the numbers in a buffer, "float64"; BYTES where it is not an array."""
    array = buf[0] if isinstance(buf, (list, tuple)) else buf
    return _name_of(array.dtype) if isinstance(array, np.ndarray) else BYTES


def fill(place: np.ndarray, data: np.ndarray) -> None:
    """Write what has come to the beginning of a place for it: bytes, whatever the types."""
    if place.dtype == data.dtype:
        place[: len(data)] = data
    else:
        place.view(np.uint8)[: data.nbytes] = data.view(np.uint8)


def _nothing(end: float, status: "Status | None") -> None:
    """What is to be recorded of a send that is done: it was when it began."""


class Request:
    """A message or a collective under way.

    Attributes:
        text, place: what it is, in words, and where in the code it began.
        finished: called once with the second of completion and the status.
        taken: whether its completion was given back.
    """

    def __init__(self, comm: "VirtualComm", text: str, finished: Callable | None, need: Need | None) -> None:
        self.comm, self.text, self.finished, self.need = comm, text, finished or _nothing, need
        self.place = here()[1] if comm.traced else ""
        self.done = self.taken = False
        self.value: Any = None
        self.by_learner = comm.traced
        comm.me.open[id(self)] = self

    # --- what kinds of requests differ in: a send is done at once ---------------------------------------------------

    def could_end(self) -> bool:
        """Whether it is done at the rank's time."""
        return True

    def done_at(self) -> float | None:
        """The second at which it will be done, if that is known."""
        return None

    def stand_still(self, text: str) -> None:
        """Wait until it is done."""

    def outcome(self) -> Status | None:
        """The status, once it is done."""
        return None

    # --- what they share --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        if not self.done:
            self.done = True
            self.comm.me.open.pop(id(self), None)
            status = self.outcome()
            self.status = status
            self.finished(self.comm._moment(), status)

    def wait_with(self, status: Status | None = None, call: str = "Wait") -> None:
        if not self.done:
            self.stand_still(self.text)
            self._end()
        if status is not None and self.status is not None:
            status.source, status.tag, status.count = self.status.source, self.status.tag, self.status.count

    status: Status | None = None

    def take_by_look(self, status: Status | None = None) -> None:
        """End it, which is done: nobody stood still for it."""
        self.comm.me.only_looks = True
        self.wait_with(status)
        self.comm.me.only_looks = False
        self.taken = True

    def Wait(self, status: Status | None = None) -> bool:
        self.wait_with(status)
        self.taken = True
        return True

    def wait(self, status: Status | None = None) -> Any:
        self.Wait(status)
        return self.value

    def Test(self, status: Status | None = None) -> bool:
        self.taken = _tested("Test", [self], all)
        if self.taken:
            self.take_by_look(status)
        return self.taken

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        return self.Test(status), self.value

    def Free(self) -> None:
        self.taken = True
        self.comm.me.open.pop(id(self), None)

    def Cancel(self) -> None:
        self.done = self.taken = True
        self.comm.me.open.pop(id(self), None)

    free, cancel = Free, Cancel

    @classmethod
    def Waitall(cls, requests: Sequence["Request"], statuses: Any = None) -> bool:
        for request in requests:
            if request is not None:
                request.wait_with(call="Waitall")
                request.taken = True
        return True

    @classmethod
    def waitall(cls, requests: Sequence["Request"], statuses: Any = None) -> list:
        cls.Waitall(requests)
        return [getattr(request, "value", None) for request in requests]

    @classmethod
    def Testall(cls, requests: Sequence["Request"], statuses: Any = None) -> bool:
        return not requests or (_tested("Testall", requests, all) and _take_all(requests))

    @classmethod
    def testall(cls, requests: Sequence["Request"], statuses: Any = None) -> tuple[bool, list | None]:
        done = cls.Testall(requests)
        return done, cls.waitall(requests) if done else None

    @classmethod
    def Waitany(cls, requests: Sequence["Request"], status: Status | None = None) -> int:
        while _active(requests) and not _tested("Waitany", requests, any):
            pass
        return _first(requests, status)

    @classmethod
    def waitany(cls, requests: Sequence["Request"], status: Status | None = None) -> tuple[int, Any]:
        index = cls.Waitany(requests, status)
        return index, requests[index].value if index >= 0 else None

    @classmethod
    def Testany(cls, requests: Sequence["Request"], status: Status | None = None) -> tuple[int, bool]:
        if _active(requests) and not _tested("Testany", requests, any):
            return UNDEFINED, False
        return _first(requests, status), True

    @classmethod
    def Waitsome(cls, requests: Sequence["Request"], statuses: Any = None) -> list[int] | None:
        while _active(requests) and not _tested("Waitsome", requests, any):
            pass
        ready = [index for index in _active(requests) if requests[index].could_end()]
        for index in ready:
            requests[index].take_by_look()
        return ready or None


def _take_all(requests: Sequence[Request | None]) -> bool:
    for index in _active(requests):
        requests[index].take_by_look()
    return True


def _active(requests: Sequence[Request | None]) -> list[int]:
    return [index for index, request in enumerate(requests) if request is not None and not request.taken]


def _first(requests: Sequence[Request], status: Status | None) -> int:
    for index in _active(requests):
        if requests[index].done or requests[index].could_end():
            requests[index].take_by_look(status)
            return index
    return UNDEFINED


def _tested(call: str, requests: Sequence[Request | None], quantity: Callable) -> bool:
    active = [request for request in requests if request is not None and not request.taken]
    if not active:
        return True
    comm = active[0].comm
    needs = tuple(request.need for request in active if request.need is not None)
    text = f"{call} of {', '.join(request.text for request in active)}"
    need = Some(needs, all=False) if needs else None

    def done() -> bool:
        return quantity(request.done or request.could_end() for request in active)

    return comm.scheduler.test(comm.me, done, text, need)


class ReceiveRequest(Request):
    """A receive that was begun."""

    def __init__(
        self, comm: "VirtualComm", text: str, wanted: Wanted, take: Callable, finished: Callable | None
    ) -> None:
        super().__init__(comm, text, finished, wanted.need)
        self.wanted, self._take = wanted, take

    def could_end(self) -> bool:
        return self.comm.scheduler.has_come(self.comm.me, self.wanted)

    def done_at(self) -> float | None:
        return self.wanted.message and self.wanted.message.arrival

    def stand_still(self, text: str) -> None:
        self.comm.scheduler.receive(self.comm.me, self.wanted, text)

    def outcome(self) -> Status:
        message = self.wanted.message
        status = _status(message)
        self.value = self._take(message)
        return status

    def Cancel(self) -> None:
        self.comm.scheduler.withdraw(self.comm.me, self.wanted)
        super().Cancel()

    cancel = Cancel


class SynchronousSend(Request):
    """A send that is done when its receiver has taken the message."""

    at: float | None = None

    def watches(self, message: Sent) -> "SynchronousSend":
        """Be done when this message is taken."""

        def taken(second: float) -> None:
            self.at = second
            me = self.comm.me
            if me.waiting and (me.testing or me.waiting[0] == self.text):
                self.comm.scheduler.wake(me, second)

        message.taken = taken
        return self

    def could_end(self) -> bool:
        return self.at is not None and self.at <= self.comm.me.clock

    def done_at(self) -> float | None:
        return self.at

    def stand_still(self, text: str) -> None:
        me = self.comm.me
        if self.at is None:
            self.comm.scheduler.wait(me, self.text, self.need)
        me.clock = max(me.clock, self.at)


class CollectiveRequest(Request):
    """A collective that was begun; `gathering` knows when it is over."""

    def __init__(
        self, comm: "VirtualComm", text: str, gathering: Gathering, take: Callable, finished: Callable
    ) -> None:
        super().__init__(comm, text, finished, gathering.meeting)
        self.gathering, self._take = gathering, take

    def could_end(self) -> bool:
        return self.gathering.ends is not None and self.gathering.ends <= self.comm.me.clock

    def done_at(self) -> float | None:
        return self.gathering.ends

    def stand_still(self, text: str) -> None:
        self.comm.scheduler.join(self.comm.me, self.gathering, text)

    def outcome(self) -> None:
        self._take(self.gathering)


class Persistent(Request):
    """What `Send_init` and `Recv_init` make: each `Start` begins anew."""

    def __init__(self, comm: "VirtualComm", begin: Callable[[], Request]) -> None:
        self._begin, self._active = begin, None
        self.comm = comm

    def Start(self) -> None:
        if self._active is not None and not self._active.taken:
            raise ValueError(f"Start: {self._active.text} is still under way; wait for it before it starts again")
        self._active = self._begin()

    @staticmethod
    def Startall(requests: Sequence["Persistent"]) -> None:
        for request in requests:
            request.Start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_active"], name)

    def wait_with(self, status: Status | None = None, call: str = "Wait") -> None:
        if self._active is not None:
            self._active.wait_with(status, call)

    def could_end(self) -> bool:
        return self._active is None or self._active.could_end()

    def Free(self) -> None:
        """Nothing to free."""

    text = property(lambda self: self._active.text if self._active else "an inactive request")
    need = property(lambda self: self._active.need if self._active else None)
    done = property(lambda self: self._active is None or self._active.done)

    @property
    def taken(self) -> bool:
        return self._active is None or self._active.taken

    @taken.setter
    def taken(self, value: bool) -> None:
        if self._active is not None:
            self._active.taken = value


def _status(message: Sent) -> Status:
    status = Status()
    status.source, status.tag = message.source, message.tag
    status.count = len(message.data) if isinstance(message.data, bytes) else message.data.nbytes
    return status


class VirtualComm:
    """A communicator on one virtual rank.

    Attributes:
        rank, size: of this communicator.
        world_ranks: for each of its ranks, its number in the run.
        label: its name, the same on all its ranks.
        traced: whether what it does is the learner's, and recorded.
    """

    traced = True

    def __init__(self, inner: "VirtualComm | None" = None, world_ranks: Any = None, label: str | None = None) -> None:
        """A communicator with the messages of another."""
        if inner is not None:
            self._sit(inner.scheduler, inner.me, inner.world_ranks, inner.label)

    def _sit(self, scheduler: Scheduler, me: VirtualRank, world_ranks: Sequence[int], label: str) -> "VirtualComm":
        self.scheduler, self.me, self.world_ranks, self.label = scheduler, me, world_ranks, label
        self.members = world_ranks
        self.size = len(world_ranks)
        self.rank = me.number if isinstance(world_ranks, range) else list(world_ranks).index(me.number)
        self._scale, self._records = scheduler.scale, scheduler.traced
        self._cost: dict[int, float] = {}
        self._needs: dict[tuple[int, int], tuple] = {}
        scheduler.members.setdefault(label, world_ranks)
        return self

    @classmethod
    def on(cls, scheduler: Scheduler, me: VirtualRank, world_ranks: Sequence[int], label: str) -> "VirtualComm":
        """The communicator of these ranks of the run, as the rank `me` holds it."""
        return cls()._sit(scheduler, me, world_ranks, label)

    @functools.cached_property
    def inner(self) -> "VirtualComm":
        """The same communicator, on which nothing is recorded."""
        comm = VirtualComm(self)
        comm.traced = comm._records = False
        return comm

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    Get_remote_size = Get_size

    def Get_name(self) -> str:
        return self.label

    def compute(self, seconds: float) -> None:
        """Let virtual time pass on this rank: what a computation costs is for the caller to say."""
        began = self.me.clock
        self.me.clock += seconds
        self.scheduler._moved = True
        if self._records:
            self._add("compute", "phase", began, self.me.clock)

    def Abort(self, errorcode: int = 0) -> None:
        raise SystemExit(errorcode)

    # --- recording --------------------------------------------------------------------------------------------------

    def _place(self) -> int | None:
        """A place among the events for what begins now and ends later: they stand in the order of beginnings."""
        if not self._records:
            return None
        self.me.events.append(None)
        return len(self.me.events) - 1

    def _moment(self) -> float:
        """The rank's time; where it keeps events, a later one each time, so that they keep their order."""
        me = self.me
        if not self._records:
            return me.clock
        me.moment = me.clock if me.clock > me.moment else max(me.moment + 1e-12, math.nextafter(me.moment, math.inf))
        return me.moment

    def _add(
        self,
        name: str,
        kind: str,
        start: float,
        end: float,
        *more: Any,
        line: int | None = None,
        place: int | None = None,
    ) -> None:
        peer, tag, size, number, call = more or (None, None, 0, 0, "")
        line = here()[0] if line is None else line
        label = "" if kind == "phase" else self.label
        event = Event(
            self.me.number, name, kind, peer, tag, size, start, end, line, label, number, call, not self.me.only_looks
        )
        if place is None:
            self.me.events.append(event)
        else:
            self.me.events[place] = event

    def check_peer(self, call: str, rank: int, least: int = 0) -> None:
        """A clear line for a rank that does not exist."""
        if rank != PROC_NULL and not least <= rank < self.size:
            raise ValueError(f"{call}: there is no rank {rank}; the ranks are 0 to {self.size - 1}")

    # --- sending ----------------------------------------------------------------------------------------------------

    def _handed_over(
        self, name: str, data: Any, size: int, kind: str, dest: int, tag: int, done: bool = True
    ) -> Sent | None:
        """Send; `done` where the event ends here too."""
        self.check_peer(name, dest)
        if dest == PROC_NULL:
            return None
        me, scheduler = self.me, self.scheduler
        peer = self.world_ranks[dest]
        if self._scale != 1:
            size = round(size * self._scale)
        began = self._moment()
        message = scheduler.send(me, self.label, self.rank, peer, tag, data, size, kind)
        if self._records:
            if done:
                self._add(name, "send", began, self._moment(), peer, tag, size, 0, kind)
        elif not self.traced:
            me.sent_bytes -= size
            me.sent_messages -= 1
        return message

    def _start(self, name: str, data: Any, size: int, kind: str, dest: int, tag: int) -> Request:
        began, line, place = self._moment(), here()[0] if self._records else None, None
        message = self._handed_over(name, data, size, kind, dest, tag, done=False)
        finished = _nothing
        if self._records and message is not None:
            place = self._place()
            peer = self.world_ranks[dest]

            def finished(end: float, status: Any) -> None:
                more = peer, tag, message.nbytes, 0, kind
                self._add(name, "send", began, end, *more, line=line, place=place)

        if message is None or name not in ("Issend", "issend", "Ssend_init"):
            return Request(self, f"{name}(dest={dest})", finished, None)
        need = Send(Message(self.label, self.world_ranks[dest], tag))
        return SynchronousSend(self, f"{name}(dest={dest})", finished, need).watches(message)

    def _send_buffer(self, name: str, start: Any, buf: Any, dest: int, tag: int) -> None:
        array = numbers(buf)
        kind = kind_of(buf) if self._records else ""
        message = self._handed_over(name, array.copy(), array.nbytes, kind, dest, tag)
        if name == "Ssend" and message is not None:
            self._wait_until_taken(name, message, dest, tag)

    def _start_buffer(self, name: str, start: Any, buf: Any, dest: int, tag: int) -> Request:
        array = numbers(buf)
        return self._start(name, array.copy(), array.nbytes, kind_of(buf), dest, tag)

    def _wait_until_taken(self, name: str, message: Sent, dest: int, tag: int) -> None:
        need = Send(Message(self.label, self.world_ranks[dest], tag))
        if message.taken is None:
            SynchronousSend(self, f"{name}(dest={dest})", None, need).watches(message).Wait()

    def _send_object(self, name: str, obj: Any, dest: int, tag: int) -> None:
        data = pickled(obj)
        message = self._handed_over(name, data, len(data), OBJECT, dest, tag)
        if name == "ssend" and message is not None:
            self._wait_until_taken(name, message, dest, tag)

    def _start_object(self, name: str, obj: Any, dest: int, tag: int) -> Request:
        data = pickled(obj)
        return self._start(name, data, len(data), OBJECT, dest, tag)

    def Send(self, buf, dest, tag=0):
        self._send_buffer("Send", None, buf, dest, tag)

    def Ssend(self, buf, dest, tag=0):
        self._send_buffer("Ssend", None, buf, dest, tag)

    def Rsend(self, buf, dest, tag=0):
        self._send_buffer("Rsend", None, buf, dest, tag)

    def Bsend(self, buf, dest, tag=0):
        self._send_buffer("Bsend", None, buf, dest, tag)

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

    def Send_init(self, buf, dest, tag=0):
        return Persistent(self, lambda: self._start_buffer("Send_init", None, buf, dest, tag))

    # --- receiving --------------------------------------------------------------------------------------------------

    def wants(self, source: int, tag: int) -> Wanted:
        """A receive, with what it waits for in words of the graph of waits."""
        known = self._needs.get((source, tag))
        if known is None:
            sender, wanted_tag = None if source == ANY_SOURCE else source, None if tag == ANY_TAG else tag
            need = Receive(Message(self.label, None if sender is None else self.world_ranks[sender], wanted_tag))
            known = self._needs[source, tag] = self.label, sender, wanted_tag, need
        return Wanted(*known)

    def _begin(self, name: str, source: int, tag: int) -> Wanted:
        self.check_peer(name, source, ANY_SOURCE)
        wanted = self.wants(source, tag)
        self.scheduler.post(self.me, wanted)
        return wanted

    def _await(self, name: str, source: int, tag: int, kind: str | None, status: Status | None) -> Sent:
        """Receive: wait, and record."""
        began, place = self._moment(), self._place()
        wanted = self._begin(name, source, tag)
        return self._await_begun(name, wanted, began, place, source, kind, status)

    def _await_begun(self, name, wanted, began, place, source, kind, status) -> Sent:
        me = self.me
        message = self.scheduler.receive(me, wanted, f"{name}(source={_name(source)})")
        if self._records:
            peer = self.world_ranks[message.source]
            self._add(name, "recv", began, self._moment(), peer, message.tag, message.nbytes, 0, kind, place=place)
        if status is not None:
            found = _status(message)
            status.source, status.tag, status.count = found.source, found.tag, found.count
        return message

    def _put(self, name: str, buf: Any, message: Sent) -> None:
        """Write a message into its place."""
        place, data = numbers(buf), message.data
        if isinstance(data, bytes):
            data = np.frombuffer(data, np.uint8)
        if data.nbytes > place.nbytes:
            raise ValueError(
                f"{name}: the message from rank {message.source} has {data.nbytes} bytes, the array for it has room "
                f"for {place.nbytes}. Are shape and dtype the same on both sides?"
            )
        if place.dtype is not data.dtype and place.itemsize and data.nbytes % place.itemsize:
            raise ValueError(
                f"{name}: the message has {data.nbytes} bytes, not a whole number of {place.dtype} of {place.itemsize} "
                "bytes. Is the dtype the same on both sides?"
            )
        fill(place, data)

    def _start_receive(self, name: str, buf: Any, source: int, tag: int) -> Request:
        return self._receiving(name, source, tag, lambda message: self._put(name, buf, message), kind_of(buf))

    def _irecv(self, name: str, source: int, tag: int) -> Request:
        return self._receiving(name, source, tag, None, OBJECT)

    def _receiving(self, name: str, source: int, tag: int, take: Callable | None, kind: str) -> Request:
        text = f"{name}(source={_name(source)})"
        if source == PROC_NULL:
            return Request(self, text, None, None)
        began, line = self._moment(), here()[0] if self._records else None
        place = self._place()
        wanted = self._begin(name, source, tag)

        def finished(end: float, status: Status | None) -> None:
            if self._records:
                message = wanted.message
                more = self.world_ranks[message.source], message.tag, message.nbytes, 0, kind
                self._add(name, "recv", began, end, *more, line=line, place=place)

        take = take or functools.partial(_unpickled, text)
        return ReceiveRequest(self, text, wanted, take, finished)

    def Recv(self, buf, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        if source == PROC_NULL:
            return
        source = self._certain(source, tag)
        message = self._await("Recv", source, tag, kind_of(buf), status)
        self._put("Recv", buf, message)

    def recv(self, buf=None, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        return self._irecv("recv", source, tag).wait(status)

    def _certain(self, source: int, tag: int, send: Any = None) -> int:
        """The rank to receive from, for those who look closer."""
        return source

    def Irecv(self, buf, source=ANY_SOURCE, tag=ANY_TAG):
        return self._start_receive("Irecv", buf, source, tag)

    def irecv(self, buf=None, source=ANY_SOURCE, tag=ANY_TAG):
        return self._irecv("irecv", source, tag)

    def Recv_init(self, buf, source=ANY_SOURCE, tag=ANY_TAG):
        return Persistent(self, lambda: self._start_receive("Recv_init", buf, source, tag))

    # --- both, and looking ahead ------------------------------------------------------------------------------------

    def Sendrecv(self, sendbuf, dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        if source == PROC_NULL:
            self._send_buffer("Sendrecv", None, sendbuf, dest, sendtag)
            return
        source = self._certain(source, recvtag)
        began, place = self._moment(), self._place()
        wanted = self._begin("Sendrecv", source, recvtag)
        self._send_buffer("Sendrecv", None, sendbuf, dest, sendtag)
        kind = kind_of(recvbuf) if self._records else ""
        message = self._await_begun("Sendrecv", wanted, began, place, source, kind, status)
        self._put("Sendrecv", recvbuf, message)

    def Sendrecv_replace(self, buf, dest, sendtag=0, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        self.Sendrecv(np.array(buf), dest, sendtag, buf, source, recvtag, status)

    def sendrecv(self, sendobj, dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG, status=None):
        receive = self._irecv("sendrecv", source, recvtag)
        self._send_object("sendrecv", sendobj, dest, sendtag)
        return receive.wait(status)

    def Probe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        wanted = self.wants(source, tag)
        message = self.scheduler.first_to_come(self.me, wanted, f"Probe(source={_name(source)})")
        if status is not None:
            found = _status(message)
            status.source, status.tag, status.count = found.source, found.tag, found.count
        return True

    def Iprobe(self, source=ANY_SOURCE, tag=ANY_TAG, status=None):
        wanted, me = self.wants(source, tag), self.me

        def come() -> bool:
            message = self.scheduler.earliest(me, wanted)
            return message is not None and message.arrival <= me.clock

        found = self.scheduler.test(me, come, f"Iprobe(source={_name(source)})", wanted.need)
        if found and status is not None:
            seen = _status(self.scheduler.earliest(me, wanted))
            status.source, status.tag, status.count = seen.source, seen.tag, seen.count
        return found

    probe, iprobe = Probe, Iprobe

    # --- collectives ------------------------------------------------------------------------------------------------

    def _message(self, nbytes: float) -> float:
        """Seconds of one message between the first and the last rank, alone on the way."""
        size = round(nbytes * self._scale)
        if size not in self._cost:
            first, last = self.world_ranks[0], self.world_ranks[-1]
            self._cost[size] = self.scheduler.wires.alone(first, last, size) if self.size > 1 else 0.0
        return self._cost[size]

    def _seconds(self, way: str, nbytes: float) -> float:
        """What a collective costs, as the head of this module says; `nbytes` is n."""
        P, gamma = self.size, self.scheduler.wires.gamma * self._scale
        levels = (P - 1).bit_length()
        alpha = self._message(0)

        def beta(size: float) -> float:
            return max(0.0, self._message(size) - alpha)

        if way == "barrier":
            return levels * alpha
        if way == "tree":
            return levels * self._message(nbytes)
        if way == "reduce":
            return levels * (self._message(nbytes) + gamma * nbytes)
        if way == "parts":
            return levels * alpha + beta((P - 1) * nbytes)
        if way == "reduce_scatter":
            return levels * alpha + beta((P - 1) * nbytes) + gamma * (P - 1) * nbytes
        if way == "pairs":
            return (P - 1) * self._message(nbytes)
        share = (P - 1) / P * nbytes
        doubling = levels * (self._message(nbytes) + gamma * nbytes)
        return min(doubling, 2 * levels * alpha + 2 * beta(share) + gamma * share)

    def _collective(
        self, name: str, agreed: str, part: Any, size: int, cost: tuple[str, float], take: Callable[[Gathering], Any]
    ) -> Any:
        """Meet the other ranks; then `take(gathering)` on each."""
        began, me = self._moment(), self.me
        gathering = self._come(agreed, part, cost)
        self.scheduler.join(me, gathering, name)
        self._note(name, agreed, gathering, began, self._moment(), size)
        return take(gathering)

    def _come(self, agreed: str, part: Any, cost: tuple[str, float]) -> Gathering:
        seconds = functools.partial(self._seconds, *cost)
        channel = self.label if self.traced else f"{self.label}/untraced"
        self.scheduler.members.setdefault(channel, self.world_ranks)
        return self.scheduler.come(self.me, channel, self.size, self.rank, agreed, part, seconds)

    def _note(self, name, agreed, gathering, began, end, size, line=None):
        if self.traced:
            self.me.sent_bytes += round(size * self._scale)
        if self._records:
            size = round(size * self._scale)
            self._add(name, "collective", began, end, None, None, size, gathering.meeting.number, agreed, line=line)

    def _begun(self, name: str, agreed: str, part: Any, size: int, cost: tuple, take: Callable) -> Request:
        began, line = self._moment(), here()[0] if self._records else None
        gathering = self._come(agreed.replace(name, f"{name[1].upper()}{name[2:]}"), part, cost)

        def finished(end: float, status: Any) -> None:
            self._note(name, agreed, gathering, began, end, size, line)

        return CollectiveRequest(self, name, gathering, take, finished)

    def Barrier(self):
        self._collective(*self._barrier("Barrier"))

    barrier = Barrier

    def Ibarrier(self):
        return self._begun(*self._barrier("Ibarrier"))

    def _barrier(self, name):
        return name, name, None, 0, ("barrier", 0), lambda gathering: None

    def _broadcast(self, name, buf, root):
        array = numbers(buf)
        own = self.rank == root
        part = array.copy() if own else None

        def take(gathering: Gathering) -> None:
            if not own:
                fill(array, gathering.parts[root])

        agreed = f"{name}(root={root}){_of(array, kind_of(buf))}"
        return name, agreed, part, array.nbytes if own else 0, ("tree", array.nbytes), take

    def Bcast(self, buf, root=0):
        self._collective(*self._broadcast("Bcast", buf, root))

    def Ibcast(self, buf, root=0):
        return self._begun(*self._broadcast("Ibcast", buf, root))

    def _reduction(self, name, sendbuf, recvbuf, op, way, root=None):
        given = recvbuf if stand_in.is_in_place(sendbuf) else sendbuf
        operation, array = stand_in.op_of(op), numbers(given)
        shown = "" if operation.name == "SUM" else f"op={operation.name}"
        more = ", ".join(filter(None, ["" if root is None else f"root={root}", shown]))
        agreed = f"{name}{f'({more})' if more else ''}{_of(array, kind_of(given))}"

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
        operation = stand_in.op_of(op)
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
        gathering = self.inner._come("allgather", thing, ("free", 0))
        self.scheduler.join(self.me, gathering, "allgather")
        return gathering.shared(list)

    def _scan(self, name, sendbuf, recvbuf, op, last):
        name, agreed, part, size, cost, _ = self._reduction(name, sendbuf, recvbuf, op, "allreduce")
        operation = stand_in.op_of(op)

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
        part = (numbers(sendbuf).copy(), *_cuts(sendbuf, self.size)) if own else None

        def take(gathering: Gathering) -> None:
            whole, counts, starts = gathering.parts[root]
            if not stand_in.is_in_place(recvbuf):
                block = whole[starts[self.rank] : starts[self.rank] + counts[self.rank]]
                self._put(name, recvbuf, Sent(root, 0, block, 0, "", 0.0))

        whole = part[0].nbytes if own else 0
        in_bytes = 0 if stand_in.is_in_place(recvbuf) else numbers(recvbuf).nbytes
        return name, f"{name}(root={root})", part, whole, ("parts", in_bytes), take

    def Scatter(self, sendbuf, recvbuf, root=0):
        self._collective(*self._scatter("Scatter", sendbuf, recvbuf, root))

    def Scatterv(self, sendbuf, recvbuf, root=0):
        self._collective(*self._scatter("Scatterv", sendbuf, recvbuf, root))

    def _gather(self, name, sendbuf, recvbuf, root):
        takes = root in (None, self.rank)
        if stand_in.is_in_place(sendbuf):
            counts, starts = _cuts(recvbuf, self.size)
            array = numbers(recvbuf)[starts[self.rank] : starts[self.rank] + counts[self.rank]]
        else:
            array = numbers(sendbuf)

        def take(gathering: Gathering) -> None:
            if takes:
                counts, starts = _cuts(recvbuf, self.size)
                place = numbers(recvbuf)
                for rank in range(self.size):
                    piece = place[starts[rank] : starts[rank] + counts[rank]]
                    self._put(name, piece, Sent(rank, 0, gathering.parts[rank], 0, "", 0.0))

        where = "" if root is None else f"(root={root})"
        return name, f"{name}{where}", array.copy(), array.nbytes, ("parts", array.nbytes), take

    def Gather(self, sendbuf, recvbuf, root=0):
        self._collective(*self._gather("Gather", sendbuf, recvbuf, root))

    def Gatherv(self, sendbuf, recvbuf, root=0):
        self._collective(*self._gather("Gatherv", sendbuf, recvbuf, root))

    def Allgather(self, sendbuf, recvbuf):
        self._collective(*self._gather("Allgather", sendbuf, recvbuf, None))

    def Allgatherv(self, sendbuf, recvbuf):
        self._collective(*self._gather("Allgatherv", sendbuf, recvbuf, None))

    def _exchange(self, name, sendbuf, recvbuf):
        given = recvbuf if stand_in.is_in_place(sendbuf) else sendbuf
        array = numbers(given)
        counts, starts = _cuts(given, self.size)
        part = [array[start : start + count].copy() for start, count in zip(starts, counts)]

        def take(gathering: Gathering) -> None:
            counts, starts = _cuts(recvbuf, self.size)
            place = numbers(recvbuf)
            for rank in range(self.size):
                fill(place[starts[rank] : starts[rank] + counts[rank]], gathering.parts[rank][self.rank])

        return name, name, part, array.nbytes, ("pairs", array.nbytes / self.size), take

    def Alltoall(self, sendbuf, recvbuf):
        self._collective(*self._exchange("Alltoall", sendbuf, recvbuf))

    def Alltoallv(self, sendbuf, recvbuf):
        self._collective(*self._exchange("Alltoallv", sendbuf, recvbuf))

    # --- collectives of Python objects ------------------------------------------------------------------------------

    def _objects(self, name: str, agreed: str, part: Any, size: int, cost: tuple, take: Callable[[list], Any]) -> Any:
        def unpack(gathering: Gathering) -> Any:
            return take([gathering.parts[rank] for rank in range(self.size)])

        return self._collective(name, agreed, part, size, cost, unpack)

    def bcast(self, obj=None, root=0):
        data = pickled(obj) if self.rank == root else b""
        agreed = f"bcast(root={root})"
        return self._objects("bcast", agreed, data, len(data), ("tree", len(data)), lambda p: pickle.loads(p[root]))

    def scatter(self, sendobj=None, root=0):
        parts: list[bytes] = []
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter: the root needs a list of {self.size} objects, one for each rank")
            parts = [pickled(part) for part in sendobj]
        size = sum(map(len, parts))
        cost = "parts", size / self.size
        mine = self.rank
        agreed = f"scatter(root={root})"
        return self._objects("scatter", agreed, parts, size, cost, lambda p: pickle.loads(p[root][mine]))

    def gather(self, sendobj, root=0):
        data = pickled(sendobj)
        mine = self.rank == root

        def take(parts: list[bytes]) -> list | None:
            return [pickle.loads(part) for part in parts] if mine else None

        return self._objects("gather", f"gather(root={root})", data, len(data), ("parts", len(data)), take)

    def allgather(self, sendobj):
        data = pickled(sendobj)
        cost = "parts", len(data)
        return self._objects("allgather", "allgather", data, len(data), cost, lambda p: list(map(pickle.loads, p)))

    def alltoall(self, sendobj):
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: every rank needs a list of {self.size} objects, one for each rank")
        parts, mine = [pickled(part) for part in sendobj], self.rank
        size = sum(map(len, parts))

        def take(all_parts: list) -> list:
            return [pickle.loads(parts[mine]) for parts in all_parts]

        return self._objects("alltoall", "alltoall", parts, size, ("pairs", size / self.size), take)

    def _folded(self, name, sendobj, op, root, way, last):
        data, operation = pickled(sendobj), stand_in.op_of(op)
        shown = "" if operation.name == "SUM" else f"op={operation.name}"
        more = ", ".join(filter(None, ["" if root is None else f"root={root}", shown]))

        def take(parts: list[bytes]) -> Any:
            if root not in (None, self.rank) or not last:
                return None
            return functools.reduce(operation, map(pickle.loads, parts[:last]))

        agreed = f"{name}({more})" if more else name
        return self._objects(name, agreed, data, len(data), (way, len(data)), take)

    def reduce(self, sendobj, op=None, root=0):
        return self._folded("reduce", sendobj, op, root, "reduce", self.size)

    def allreduce(self, sendobj, op=None):
        return self._folded("allreduce", sendobj, op, None, "allreduce", self.size)

    def scan(self, sendobj, op=None):
        return self._folded("scan", sendobj, op, None, "allreduce", self.rank + 1)

    def exscan(self, sendobj, op=None):
        return self._folded("exscan", sendobj, op, None, "allreduce", self.rank)

    # --- new communicators ------------------------------------------------------------------------------------------

    def _meet(self, name: str, part: Any) -> tuple[list, int]:
        """What all ranks said, and which collective this was; a new communicator costs what a barrier does."""
        gathering = self._come(name, part, ("barrier", 0))
        self.scheduler.join(self.me, gathering, name)
        return gathering.shared(list), gathering.meeting.number

    def Split(self, color=0, key=0):
        said, number = self._meet("Split", (color, key))
        if color in (None, UNDEFINED):
            return None
        mine = sorted((other_key, rank) for rank, (other, other_key) in enumerate(said) if other == color)
        ranks = [self.world_ranks[rank] for _, rank in mine]
        return VirtualComm.on(self.scheduler, self.me, ranks, f"{self.label}/{number}/{min(ranks)}")

    def Dup(self):
        _, number = self._meet("Dup", None)
        return VirtualComm.on(self.scheduler, self.me, self.world_ranks, f"{self.label}/{number}/{self.world_ranks[0]}")

    Clone = Dup

    def Split_type(self, split_type=0, key=0, info=None):
        return self.Split(0, key)

    def Create_cart(self, dims, periods=None, reorder=False):
        _, number = self._meet("Create_cart", tuple(dims))
        size = int(np.prod(dims))
        if self.rank >= size:
            return None
        comm = VirtualCart.on(self.scheduler, self.me, self.world_ranks[:size], f"{self.label}/{number}/cart")
        periods = list(periods) if periods is not None else [False] * len(dims)
        comm.dims, comm.periods = [int(extent) for extent in dims], [bool(period) for period in periods]
        return comm

    def Free(self):
        """Nothing to free."""


class VirtualCart(VirtualComm):
    """Ranks on a grid, the last dimension counted fastest."""

    dims: list[int]
    periods: list[bool]

    @property
    def coords(self) -> list[int]:
        """Where this rank is."""
        return self.Get_coords(self.rank)

    ndim = property(lambda self: len(self.dims))
    dim = ndim

    def Get_coords(self, rank):
        return [int(place) for place in np.unravel_index(rank, self.dims)]

    def Get_topo(self):
        return self.dims, self.periods, self.coords

    topo = property(Get_topo)

    def Get_cart_rank(self, coords):
        wrapped = []
        for place, extent, period in zip(coords, self.dims, self.periods):
            if not period and not 0 <= place < extent:
                raise ValueError(f"Get_cart_rank: {place} is outside 0 to {extent - 1}")
            wrapped.append(place % extent)
        return int(np.ravel_multi_index(wrapped, self.dims))

    def Shift(self, direction, disp):
        def at(step: int) -> int:
            coords = self.coords
            coords[direction] += step
            inside = self.periods[direction] or 0 <= coords[direction] < self.dims[direction]
            return self.Get_cart_rank(coords) if inside else PROC_NULL

        return at(-disp), at(disp)

    def Sub(self, remain_dims):
        keep = [bool(remain) for remain in remain_dims]
        coords = self.coords
        left_out = [place for place, remain in zip(coords, keep) if not remain]
        color = int(np.ravel_multi_index(left_out, [d for d, r in zip(self.dims, keep) if not r])) if left_out else 0
        sub = self.Split(color, self.rank)
        comm = VirtualCart.on(self.scheduler, self.me, sub.world_ranks, f"{sub.label}/sub")
        comm.dims = [extent for extent, remain in zip(self.dims, keep) if remain]
        comm.periods = [period for period, remain in zip(self.periods, keep) if remain]
        return comm


def _name(source: int) -> str:
    return "ANY_SOURCE" if source == ANY_SOURCE else str(source)


def _unpickled(text: str, message: Sent) -> Any:
    try:
        return pickle.loads(message.data)
    except Exception as error:
        raise ValueError(
            f"{text}: the message from rank {message.source} is not a pickled object. "
            "Send goes with Recv, send with recv."
        ) from error


def _of(array: np.ndarray, kind: str) -> str:
    return f" of {array.nbytes} {BYTES}" if kind == BYTES else f" of {len(array)} {kind}"


def _combined(op: Op, parts: list[np.ndarray]) -> np.ndarray:
    """All parts in the order of ranks."""
    return functools.reduce(op.combine, parts)


def _cuts(buf: Any, size: int) -> tuple[list[int], list[int]]:
    """How many numbers each rank has in a buffer, and from where on: as [array, counts, …] says, else as many each."""
    if isinstance(buf, (list, tuple)):
        for part in buf[1:]:
            if isinstance(part, (tuple, list)) and part and isinstance(part[0], (tuple, list, np.ndarray)):
                counts, starts = [int(count) for count in part[0]], part[1]
                return counts, [int(s) for s in starts] if starts is not None else [0, *accumulate(counts)][:-1]
            if isinstance(part, (list, tuple, np.ndarray)):
                counts = [int(count) for count in part]
                starts = next((p for p in buf[2:] if p is not part and isinstance(p, (list, tuple, np.ndarray))), None)
                return counts, [int(s) for s in starts] if starts is not None else [0, *accumulate(counts)][:-1]
    each = operator.floordiv(len(numbers(buf)), size)
    return [each] * size, [each * rank for rank in range(size)]
