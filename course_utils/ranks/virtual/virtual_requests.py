"""Requests of virtual ranks: messages and collectives under way, and what waits for one, some or all of them."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_utils.ranks.virtual.virtual_mpi import Status
from course_utils.ranks.virtual.virtual_time import Gathering, Left, Sent, Wanted
from course_utils.trace.recorder import NOWHERE, here
from course_utils.trace.several_requests import SeveralRequests
from course_utils.trace.wait_graph import Need, Some

if TYPE_CHECKING:
    from course_utils.ranks.virtual.rank_in_communicator import Member


def records_nothing(end: float, status: Status | None) -> None:
    """For a send that is done when it begins, and was recorded then."""


class Request(SeveralRequests):
    """A message or a collective under way.

    Attributes:
        text, place: what it is, in words, and where in the code it began.
        finished: called once with the second of completion and the status.
        taken: whether its completion was given back.
    """

    def __init__(self, comm: "Member", text: str, finished: Callable | None, need: Need | None) -> None:
        self.comm, self.text, self.finished, self.need = comm, text, finished or records_nothing, need
        self.place = here()[1] if comm.traced else NOWHERE
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
            self.finished(self.comm.moment(), status)

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
        self.taken = self.taken or _tested("Test", [self], all)
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
    def active(cls, requests):
        return [place for place, request in enumerate(requests) if request is not None and not request.taken]

    @classmethod
    def look(cls, call, requests, all_of_them):
        active = cls.active(requests)
        if not _tested(call, [requests[place] for place in active], all if all_of_them else any):
            return None
        return [place for place in active if requests[place].done or requests[place].could_end()]

    @classmethod
    def wait_for_all(cls, requests):
        for request in requests:
            if request is not None:
                request.wait_with(call="Waitall")
                request.taken = True

    @classmethod
    def wait_for_some(cls, call, requests):
        ready = None
        while ready is None:
            ready = cls.look(call, requests, False)
        return ready

    @classmethod
    def take(cls, request, status=None):
        request.take_by_look(status)


def _tested(call: str, active: Sequence[Request], quantity: Callable) -> bool:
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
        return self.wanted.message.arrival if self.wanted.message else None

    def stand_still(self, text: str) -> None:
        self.comm.scheduler.receive(self.comm.me, self.wanted, text)

    def outcome(self) -> Status:
        message = self.wanted.message
        assert message is not None
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
        assert self.at is not None
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


def status_of(message: Sent) -> Status:
    """Whom a message came from, with which tag, and how long it is."""
    status = Status()
    status.source, status.tag = message.source, message.tag
    status.count = len(message.data) if isinstance(message.data, bytes) else message.data.nbytes
    return status
