"""Requests of virtual ranks: messages and collectives under way, and what waits for one, some or all of them."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_utils.ranks.virtual.stand_in import UNDEFINED, Status
from course_utils.ranks.virtual.virtual_time import Gathering, Left, Sent, Wanted
from course_utils.trace.recorder import here
from course_utils.trace.waiting import Need, Some

if TYPE_CHECKING:
    from course_utils.ranks.virtual.member import Member


def records_nothing(end: float, status: Status | None) -> None:
    """For a send that is done when it begins, and was recorded then."""


class Request:
    """A message or a collective under way.

    Attributes:
        text, place: what it is, in words, and where in the code it began.
        finished: called once with the second of completion and the status.
        taken: whether its completion was given back.
    """

    def __init__(self, comm: "Member", text: str, finished: Callable | None, need: Need | None) -> None:
        self.comm, self.text, self.finished, self.need = comm, text, finished or records_nothing, need
        self.place = here()[1] if comm.traced else ""
        self.done = self.taken = False
        self.value: Any = None
        self.by_learner = comm.traced
        comm.me.open[id(self)] = self

    def __reduce__(self) -> tuple:
        """A request that a function returns leaves its process empty, as a real one does."""
        return object.__new__, (type(self),)

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
            try:
                self.stand_still(self.text)
            except Left:
                self.finished(math.inf, None)
                raise
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

    def __init__(self, comm: "Member", text: str, wanted: Wanted, take: Callable, finished: Callable | None) -> None:
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
        status = status_of(message)
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

    def __init__(self, comm: "Member", text: str, gathering: Gathering, take: Callable, finished: Callable) -> None:
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

    def __init__(self, comm: "Member", begin: Callable[[], Request]) -> None:
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


def status_of(message: Sent) -> Status:
    """Whom a message came from, with which tag, and how long it is."""
    status = Status()
    status.source, status.tag = message.source, message.tag
    status.count = len(message.data) if isinstance(message.data, bytes) else message.data.nbytes
    return status
