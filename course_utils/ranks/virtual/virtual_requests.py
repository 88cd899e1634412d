"""Requests of virtual ranks: messages and collectives under way, and what waits for one, some or all of them."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_utils.ranks.virtual.virtual_mpi import PROC_NULL, KnownInPart, Status
from course_utils.ranks.virtual.virtual_time import (
    OpenCollective,
    PostedReceive,
    RunIsOver,
    VirtualMessage,
    VirtualRank,
)
from course_utils.trace.mpi.several_requests import SeveralRequests, with_statuses
from course_utils.trace.recorder import NO_LINE, current_line
from course_utils.trace.wait_graph import CombinedNeed, Need

if TYPE_CHECKING:
    from course_utils.ranks.virtual.rank_in_communicator import RankInCommunicator


def record_nothing(end: float, status: Status | None) -> None:
    """For a send that is done when it begins, and was recorded then."""


class Request(SeveralRequests, KnownInPart):
    """A message or a collective under way.

    Attributes:
        text, source_line: what it is, in words, and where in the code it began.
        on_completion: called once with the second of completion and the status.
        inactive: whether its completion was given back.
        sends: the bytes of the message that it sends; None where it sends none.
    """

    sends: int | None = None
    called = "MPI.Request"
    left_out = frozenset(
        ("f2py", "fromhandle", "fromint", "get_status_all", "get_status_any", "get_status_some", "handle")
        + ("py2f", "toint")
    )

    def __init__(
        self, comm: "RankInCommunicator", text: str, on_completion: Callable | None, need: Need | None
    ) -> None:
        self.comm, self.text, self.on_completion, self.need = comm, text, on_completion or record_nothing, need
        self.source_line = current_line()[1] if comm.traced else NO_LINE
        self.done = self.inactive = False
        self.value: Any = None
        self.by_learner = comm.traced
        comm.me.open[id(self)] = self

    def __reduce__(self) -> tuple:
        """A request that a function returns leaves its process empty, as a real one does."""
        return object.__new__, (type(self),)

    # --- what kinds of requests differ in: a send is done at once ---------------------------------------------------

    def is_complete(self) -> bool:
        """Whether it is done at the rank's time."""
        return True

    def done_at(self) -> float | None:
        """The second at which it will be done, if that is known."""
        return None

    def wait_until_done(self, text: str) -> None:
        """Wait until it is done."""

    def final_status(self) -> Status | None:
        """The status, once it is done."""
        return None

    # --- what they share --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        if not self.done:
            self.done = True
            self.comm.me.open.pop(id(self), None)
            status = self.final_status()
            self.status = status
            self.on_completion(self.comm.moment(), status)

    def wait_polling(self, status: Status | None = None, call: str = "Wait") -> None:
        if not self.done:
            try:
                self.wait_until_done(self.text)
            except RunIsOver:
                self.on_completion(math.inf, None)
                raise
            self._end()
        if status is not None and self.status is not None and not self.inactive:
            status.take(self.status)

    status: Status | None = None

    def take_by_test(self, status: Status | None = None) -> None:
        """End it, which is done: nobody stood still for it."""
        self.comm.me.by_test = True
        self.wait_polling(status)
        self.comm.me.by_test = False
        self.inactive = True

    def Wait(self, status: Status | None = None) -> bool:
        self.wait_polling(status)
        self.inactive = True
        return True

    def wait(self, status: Status | None = None) -> Any:
        self.Wait(status)
        return self.value

    def Test(self, status: Status | None = None) -> bool:
        self.inactive = self.inactive or _test("Test", [self], all)
        if self.inactive:
            self.take_by_test(status)
        return self.inactive

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        return self.Test(status), self.value

    def Get_status(self, status: Status | None = None) -> bool:
        done = self.inactive or _test("Get_status", [self], all)
        if done and not self.inactive:
            self.wait_polling(status)
        return done

    get_status = Get_status

    def Free(self) -> None:
        self.inactive = True
        self.comm.me.open.pop(id(self), None)

    def Cancel(self) -> None:
        """Nothing: a send was handed over when it began."""

    free, cancel = Free, Cancel

    @classmethod
    def active_positions(cls, requests):
        return [position for position, request in enumerate(requests) if request is not None and not request.inactive]

    @classmethod
    def test_positions(cls, call, requests, all_of_them):
        active_positions = cls.active_positions(requests)
        if not _test(call, [requests[position] for position in active_positions], all if all_of_them else any):
            return None
        return [
            position for position in active_positions if requests[position].done or requests[position].is_complete()
        ]

    @classmethod
    def wait_for_all(cls, requests, statuses=None):
        for request, status in with_statuses(requests, statuses):
            if request is not None:
                request.wait_polling(status, call="Waitall")
                request.inactive = True

    @classmethod
    def wait_for_some(cls, call, requests):
        ready = None
        while ready is None:
            ready = cls.test_positions(call, requests, False)
        return ready

    @classmethod
    def take_back(cls, request, status=None):
        request.take_by_test(status)


def _test(call: str, active: Sequence[Request], quantity: Callable) -> bool:
    if not active:
        return True
    comm = active[0].comm
    needs = tuple(request.need for request in active if request.need is not None)
    text = f"{call} {'for any of' if call.startswith('Wait') else 'of'} {', '.join(request.text for request in active)}"
    need = CombinedNeed(needs, all=False) if needs else None

    def done() -> bool:
        return quantity(request.done or request.is_complete() for request in active)

    return comm.scheduler.test(comm.me, done, text, need)


class ReceiveRequest(Request):
    """A receive that was begun."""

    def __init__(
        self,
        comm: "RankInCommunicator",
        text: str,
        receive: PostedReceive,
        take: Callable,
        on_completion: Callable | None,
    ) -> None:
        super().__init__(comm, text, on_completion, receive.need)
        self.receive, self._take = receive, take

    def is_complete(self) -> bool:
        return self.comm.scheduler.has_come(self.comm.me, self.receive)

    def done_at(self) -> float | None:
        return self.receive.message.arrival if self.receive.message else None

    def wait_until_done(self, text: str) -> None:
        self.comm.scheduler.receive(self.comm.me, self.receive, text)

    def final_status(self) -> Status:
        message = self.receive.message
        assert message is not None
        status = status_of(message)
        self.value = self._take(message)
        return status

    def Cancel(self) -> None:
        if self.receive.message is None:
            self.comm.scheduler.withdraw(self.comm.me, self.receive)
            self.status = Status()
            self.status.cancelled = self.done = True
            self.comm.me.open.pop(id(self), None)

    cancel = Cancel


class FromNobody(Request):
    """A receive from PROC_NULL."""

    def final_status(self) -> Status:
        return from_nobody()


class VirtualSendAndReceive(Request):
    """What `Isendrecv` makes: a receive and a send under way, which end together."""

    def __init__(self, receive: Request, send: Request) -> None:
        arguments = (part.text.partition("(")[2].removesuffix(")") for part in (send, receive))
        super().__init__(send.comm, f"Isendrecv({', '.join(arguments)})", None, receive.need)
        self.comm.me.open.pop(id(self), None)  # its parts are there
        self._parts = receive, send

    def is_complete(self) -> bool:
        return all(part.done or part.is_complete() for part in self._parts)

    def wait_until_done(self, text: str) -> None:
        for part in self._parts:
            part.wait_until_done(text)

    def final_status(self) -> Status | None:
        for part in self._parts:
            part.wait_polling()
            part.inactive = True
        return self._parts[0].status

    def Free(self) -> None:
        for part in self._parts:
            part.Free()

    free = Free


class SynchronousSend(Request):
    """A send that is done when its receiver has taken the message."""

    message: VirtualMessage
    receiver: VirtualRank

    def complete_with(self, message: VirtualMessage, receiver: VirtualRank) -> "SynchronousSend":
        """Be done when this rank has taken this message."""
        self.message, self.receiver = message, receiver
        message.synchronous_sender = self.comm.me
        return self

    def is_complete(self) -> bool:
        return self.comm.scheduler.is_taken(self.comm.me, self.message, self.receiver, self.comm.label)

    def done_at(self) -> float | None:
        return self.message.taken_at

    def wait_until_done(self, text: str) -> None:
        assert self.need is not None
        where = self.message, self.receiver, self.comm.label
        self.comm.scheduler.wait_until_taken(self.comm.me, *where, self.text, self.need)


class CollectiveRequest(Request):
    """A collective that was begun; `collective` knows when it is over."""

    def __init__(
        self, comm: "RankInCommunicator", text: str, collective: OpenCollective, take: Callable, on_completion: Callable
    ) -> None:
        super().__init__(comm, text, on_completion, collective.need)
        self.collective, self._take = collective, take

    def is_complete(self) -> bool:
        return self.collective.ends is not None and self.collective.ends <= self.comm.me.clock

    def done_at(self) -> float | None:
        return self.collective.ends

    def wait_until_done(self, text: str) -> None:
        self.comm.scheduler.wait_for_collective(self.comm.me, self.collective, text)

    def final_status(self) -> None:
        self._take(self.collective)


def from_nobody() -> Status:
    """The status of a receive from PROC_NULL."""
    status = Status()
    status.source = PROC_NULL
    return status


def status_of(message: VirtualMessage) -> Status:
    """Whom a message came from, with which tag, and how long it is."""
    status = Status()
    status.source, status.tag = message.source, message.tag
    status.count = len(message.data) if isinstance(message.data, bytes) else message.data.nbytes
    return status
