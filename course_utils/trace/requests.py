"""Requests whose waits are polled, so that they can be seen and left, and that record when they complete."""

import pickle
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from mpi4py import MPI

from course_utils.trace.buffers_in_use import contiguous, note_overlap, unchanged
from course_utils.trace.recorder import NOWHERE, CodeLine, here, recorder
from course_utils.trace.several_requests import SeveralRequests
from course_utils.trace.wait_graph import Need, any_of

if TYPE_CHECKING:
    from course_utils.trace.traced_messages import PointToPoint

# Called once, with the time of completion and the status; with inf and None for what was broken off.
Finished = Callable[[float, MPI.Status | None], None]


class Waitable:
    """What one can wait for, and test. Who has it is `complete` after a while.

    Attributes:
        text, place, need: as `Recorder.wait`'s.
        by_learner: whether the learner's code began it, and so must wait for it.
        taken: whether its completion was given back; then it counts as inactive.
    """

    text = ""
    place = NOWHERE
    need: Need | None = None
    finished: Finished | None = None
    by_learner = True
    taken = False

    def complete(self, status: MPI.Status | None = None) -> bool:
        """Test once; on completion record the event. True ever after."""
        raise NotImplementedError

    def wait_with(self, status: MPI.Status | None = None, call: str = "Wait") -> None:
        """Poll until done. Where `call` is another than the one that began, both are named."""
        _, place = here()
        text = self.text if place == self.place else f"{call} for {self.text}{begun(self.place, place)}"
        try:
            recorder.wait(lambda: self.complete(status), text, place, self.need)
        except KeyboardInterrupt:
            if self.finished:
                self.finished(float("inf"), None)
            raise

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        self.wait_with(status)
        self.taken = True
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        self.taken = _tested("Test", [self], _complete(self, status))
        return self.taken


class TracedRequest(SeveralRequests, Waitable, MPI.Request):
    """`MPI.Request` of a message through buffers, or of a collective. Takes the class's place in `mpi4py.MPI`."""

    done = False
    writes: np.ndarray | None = None
    started: MPI.Request

    @classmethod
    def traced(
        cls, request: MPI.Request, text: str, place: CodeLine, finished: Finished, need: Need | None = None
    ) -> "TracedRequest":
        """Wrap a request that has been started; `finished` records the event, `need` is what it waits for."""
        traced = cls(request)
        traced.text, traced.place, traced.finished, traced.need = text, place, finished, need
        traced.started = request  # holds the buffer, into which MPI may write until the request is done
        recorder.opened(traced)
        return traced

    def uses(self, reads: Any, writes: Any) -> None:
        """Note it when the learner's code touches these buffers before the request is complete, which MPI forbids."""
        read, self.writes = contiguous(reads), contiguous(writes)
        note_overlap(self, read, self.writes)
        if read is not None and self.finished:
            self.finished = unchanged(read, self, self.finished)

    def complete(self, status: MPI.Status | None = None) -> bool:
        if self.done:
            return True
        status = status or MPI.Status()
        if not super(Waitable, self).Test(status):  # MPI's own test
            return False
        self.done = True
        recorder.closed(self)
        if self.finished:
            self.finished(time.perf_counter(), status)
        return True

    def wait(self, status=None):
        self.Wait(status)

    def test(self, status=None):
        return self.Test(status), None

    def Free(self):
        recorder.keep(self)  # MPI may still send from its buffer
        self.taken = True

    free = Free

    @classmethod
    def active(cls, requests):
        return _active(requests)

    @classmethod
    def look(cls, call, requests, all_of_them):
        active, ready = _active(requests), _ready(requests)
        done = len(ready) == len(active) if all_of_them else bool(ready) or not active
        return ready if _tested(call, requests, done) else None

    @classmethod
    def wait_for_all(cls, requests):
        _wait_for_all(requests)

    @classmethod
    def wait_for_some(cls, call, requests):
        _, place = here()
        text, need = _any_of(requests)
        active = _active(requests)
        ready: list[int] = []

        def done() -> bool:
            ready[:] = _ready(requests)
            return not active or bool(ready)

        recorder.wait(done, f"{call} for any of {text}", place, need)
        return ready

    @classmethod
    def take(cls, request, status=None):
        if hasattr(request, "complete"):
            request.taken = True


# --- several requests; what was given back once counts as inactive, as MPI.REQUEST_NULL does --------------------------


def _active(requests: Sequence[Any]) -> list[int]:
    return [
        index
        for index, request in enumerate(requests)
        if not getattr(request, "taken", False) and (hasattr(request, "complete") or request != MPI.REQUEST_NULL)
    ]


def _ready(requests: Sequence[Any]) -> list[int]:
    return [index for index in _active(requests) if _complete(requests[index])]


def _any_of(requests: Sequence[Any]) -> tuple[str, Need | None]:
    active = [requests[index] for index in _active(requests)]
    text = ", ".join(getattr(request, "text", "request") for request in active)
    return text, any_of(getattr(request, "need", None) for request in active)


def _tested(call: str, requests: Sequence[Any], done: bool) -> bool:
    """What a test has found; where that is nothing, the rank's recorder hears what was asked for."""
    if not done:
        text, need = _any_of(requests)
        recorder.tested_in_vain(f"{call} of {text}", need)
    return done


def _complete(request: Any, status: MPI.Status | None = None) -> bool:
    """Look, without standing still, whether it is done."""
    if not hasattr(request, "complete"):
        return request.Test()
    recorder.only_looks = True
    try:
        return request.complete(status)
    finally:
        recorder.only_looks = False


def begun(first: CodeLine, then: CodeLine) -> str:
    """Where a request began, behind its name: " of line 3", and of which file where that is another than `then`'s."""
    if not first:
        return ""
    return f" of line {first.number}" + ("" if first.where == then.where else f" of {first.where}")


def _wait_for_all(requests: Sequence[Any]) -> None:
    for request in requests:
        if hasattr(request, "wait_with"):
            request.wait_with(call="Waitall")
            request.taken = True
        elif request != MPI.REQUEST_NULL:
            _, place = here()
            recorder.wait(request.Test, "Waitall", place)


class PickledReceive(Waitable):
    """A receive of a Python object of unknown size: it takes its message when one has come.

    mpi4py's own `irecv` needs to know how large the message may be; this one asks first.
    """

    finished: Finished

    def __init__(
        self, comm: "PointToPoint", source: int, tag: int, text: str, place: CodeLine, finished: Finished
    ) -> None:
        self.comm, self.source, self.tag = comm, source, tag
        self.text, self.place, self.finished = text, place, finished
        self.matched = self.done = source == MPI.PROC_NULL
        self.value: Any = None
        self.need = None if self.matched else comm.wants(source, tag)
        self.status = MPI.Status()
        self._data: np.ndarray | None = None
        self._rest: MPI.Request | None = None
        if not self.matched:
            recorder.opened(self)

    def try_to_match(self) -> bool:
        """Take a message that fits, if one has come; over a slow link the rest of it takes its time."""
        if self.matched:
            return True
        message = self.comm.inner.Improbe(self.source, self.tag, self.status)
        if message is None:
            return False
        self._data = np.empty(self.status.Get_count(MPI.BYTE), np.uint8)
        self._rest = message.Irecv([self._data, MPI.BYTE])
        self.matched = True
        self.comm.posted.remove(self)
        return True

    def _unpack(self) -> None:
        """The whole message is here."""
        data = b"" if self._data is None else self._data.data
        self._data, self._rest, self.done = None, None, True
        recorder.closed(self)
        self.finished(time.perf_counter(), self.status)
        try:
            self.value = pickle.loads(data)
        except Exception as error:
            raise ValueError(
                f"{self.text}: the message from rank {self.status.source} is not a pickled object. "
                "Send goes with Recv, send with recv."
            ) from error

    def complete(self, status: MPI.Status | None = None) -> bool:
        if not self.matched:
            self.comm.serve_posted()
        if not self.done and self._rest is not None and self._rest.Test():
            self._unpack()
        if self.done and status is not None:
            status.source, status.tag = self.status.source, self.status.tag
        return self.done

    def wait(self, status: MPI.Status | None = None) -> Any:
        self.Wait(status)
        return self.value

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        return self.Test(), self.value

    def Cancel(self) -> None:
        """Take no message any more."""
        if not self.matched:
            self.matched = self.done = True
            self.comm.posted.remove(self)
            recorder.closed(self)

    cancel = Free = free = Cancel


class PersistentRequest(Waitable):
    """What `Send_init` and `Recv_init` make: each `Start` begins the nonblocking call anew.

    It takes the place of `MPI.Prequest`, in `mpi4py.MPI` too.
    """

    _active: TracedRequest | None = None

    def __init__(self, call: str, begin: Callable[[], TracedRequest]) -> None:
        self._begin = begin
        recorder.has_made(self, call)

    def Start(self) -> None:
        """Begin.

        Raises:
            ValueError: what was begun before is not complete.
        """
        if self._active is not None and not self._active.taken:
            raise ValueError(f"Start: {self._active.text} is still under way; wait for it before it starts again")
        self._active = self._begin()

    @staticmethod
    def Startall(requests: "Sequence[PersistentRequest]") -> None:
        """Begin them all."""
        for request in requests:
            request.Start()

    @property
    def text(self) -> str:  # type: ignore[override] # as what it has started
        return self._active.text if self._active else "an inactive request"

    @property
    def place(self) -> CodeLine:  # type: ignore[override] # as what it has started
        return self._active.place if self._active else NOWHERE

    @property
    def need(self) -> Need | None:  # type: ignore[override] # as what it has started
        return self._active.need if self._active else None

    def wait_with(self, status: Any = None, call: str = "Wait") -> None:
        if self._active is not None:
            self._active.wait_with(status, call)

    @property
    def taken(self) -> bool:
        return self._active is None or self._active.taken

    @taken.setter
    def taken(self, value: bool) -> None:
        if self._active is not None:
            self._active.taken = value

    def complete(self, status: MPI.Status | None = None) -> bool:
        return self._active is None or self._active.complete(status)

    def Free(self) -> None:
        recorder.has_freed(self)
        if self._active is not None and not self._active.taken:
            recorder.keep(self._active)

    wait, test, free = Waitable.Wait, Waitable.Test, Free
