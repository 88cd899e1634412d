"""Requests of virtual ranks that are started again and again, and messages that were matched before they are taken."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_utils.ranks.virtual.virtual_mpi import KnownInPart, MPIException, Status
from course_utils.ranks.virtual.virtual_requests import Request

if TYPE_CHECKING:
    from course_utils.ranks.virtual.rank_in_communicator import RankInCommunicator


class VirtualPersistentRequest(Request):
    """What `Send_init` and `Recv_init` make: `Start` begins the message, again and again."""

    called = "MPI.Prequest"

    def __init__(self, comm: "RankInCommunicator", text: str, begin: Callable[[], Request]) -> None:
        """`begin`: starts the message once, and gives back its request."""
        super().__init__(comm, text, None, None)
        comm.me.open.pop(id(self), None)  # each message is there while it is under way
        self._begin = begin
        self._started: Request | None = None
        self.done = self.inactive = True

    def Start(self) -> None:
        if not self.inactive:
            raise MPIException(f"Start: {self.text} was started before and has not been waited for")
        self._started = self._begin()
        self.need, self.done, self.inactive = self._started.need, False, False

    @classmethod
    def Startall(cls, requests: Sequence["VirtualPersistentRequest"]) -> None:
        for request in requests:
            request.Start()

    def is_complete(self) -> bool:
        return self._started is None or self._started.done or self._started.is_complete()

    def done_at(self) -> float | None:
        return self._started.done_at() if self._started else None

    def wait_until_done(self, text: str) -> None:
        if self._started:
            self._started.wait_until_done(text)

    def final_status(self) -> Status | None:
        if self._started is None:
            return None
        self._started.wait_polling()
        self._started.inactive = True
        return self._started.status

    def Free(self) -> None:
        if self._started:
            self._started.Free()
        self.inactive = True

    free = Free


class MatchedMessage(KnownInPart):
    """What `Mprobe` gives back: a message that no other receive can take any more."""

    called = "MPI.Message"

    def __init__(self, take: Callable[[str, Any, Status | None], Any], start: Callable[[str, Any], Request]) -> None:
        """Keep how it is received.

        Args:
            take: receives it at once, given the call, a place for numbers or None for an object, and a status.
            start: begins to.
        """
        self._take, self._start = take, start

    def Recv(self, buf: Any, status: Status | None = None) -> None:
        self._take("Message.Recv", buf, status)

    def recv(self, status: Status | None = None) -> Any:
        return self._take("Message.recv", None, status)

    def Irecv(self, buf: Any) -> Request:
        return self._start("Message.Irecv", buf)

    def irecv(self) -> Request:
        return self._start("Message.irecv", None)
