"""Requests whose waits are polled, so that they can be seen and left, and that record when they complete."""

import functools
import pickle
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from mpi4py import MPI

from course_utils.errors import MessageTruncated
from course_utils.trace.buffers_in_use import contiguous_array, note_overlapping_buffers, watch_for_changes
from course_utils.trace.mpi.call_errors import error_text, note_call
from course_utils.trace.mpi.several_requests import SeveralRequests, with_statuses
from course_utils.trace.recorder import NO_LINE, SourceLine, current_line, recorder
from course_utils.trace.wait_graph import CombinedNeed, Need, any_of

if TYPE_CHECKING:
    from course_utils.trace.mpi.traced_messages import PointToPoint

# Called once, with the time of completion and the status; with inf and None for what was broken off.
OnCompletion = Callable[[float, MPI.Status | None], None]


class Waitable:
    """What one can wait for, and test. Who has it is `complete` after a while.

    Attributes:
        text, source_line, need: as `Recorder.wait`'s.
        by_learner: whether the learner's code began it, and so must wait for it.
        inactive: whether its completion was given back; then it counts as inactive.
    """

    text = ""
    source_line = NO_LINE
    need: Need | None = None
    on_completion: OnCompletion | None = None
    by_learner = True
    inactive = False

    def is_complete(self) -> bool:
        """Test once whether it is done, and record nothing: nobody has been told."""
        raise NotImplementedError

    def complete(self, status: MPI.Status | None = None) -> bool:
        """Test once; on completion record the event. True ever after."""
        raise NotImplementedError

    def wait_polling(self, status: MPI.Status | None = None, call: str = "Wait") -> None:
        """Poll until done. Where `call` is another than the one that began, both are named."""
        _, source_line = current_line()
        text = (
            self.text
            if source_line == self.source_line
            else f"{call} for {self.text}{origin_text(self.source_line, source_line)}"
        )
        try:
            recorder.wait(lambda: self.complete(status), text, source_line, self.need)
        except KeyboardInterrupt:
            if self.on_completion:
                self.on_completion(float("inf"), None)
            raise

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        self.wait_polling(status)
        self.inactive = True
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        self.inactive = _note_test("Test", [self], _test_once(self, status))
        return self.inactive


class TracedRequest(SeveralRequests, Waitable, MPI.Request):
    """`MPI.Request` of a message through buffers, or of a collective. Takes the class's place in `mpi4py.MPI`."""

    done = False
    writes: np.ndarray | None = None
    started: MPI.Request
    status: MPI.Status | None = None

    @classmethod
    def wrap(
        cls,
        request: MPI.Request,
        text: str,
        source_line: SourceLine,
        on_completion: OnCompletion,
        need: Need | None = None,
    ) -> "TracedRequest":
        """Wrap a request that has been started; `on_completion` records the event, `need` is what it waits for."""
        traced = cls(request)
        traced.text, traced.source_line, traced.on_completion, traced.need = text, source_line, on_completion, need
        traced.started = request  # holds the buffer, into which MPI may write until the request is done
        recorder.add_open(traced)
        return traced

    def track_buffers(self, reads: Any, writes: Any) -> None:
        """Note it when the learner's code touches these buffers before the request is complete, which MPI forbids."""
        read, self.writes = contiguous_array(reads), contiguous_array(writes)
        note_overlapping_buffers(self, read, self.writes)
        if read is not None and self.on_completion:
            self.on_completion = watch_for_changes(read, self, self.on_completion)

    def is_complete(self) -> bool:
        if self.status is None:
            status = MPI.Status()
            try:
                if not super(Waitable, self).Test(status):  # MPI's own test
                    return False
            except MPI.Exception as error:
                self.done = self.inactive = True
                recorder.remove_open(self)
                note_call(error, self.text.partition("(")[0])
                if error.Get_error_class() == MPI.ERR_TRUNCATE:
                    raise MessageTruncated(error_text(error)) from None  # as Recv's
                raise
            self.status = status
        return True

    def complete(self, status: MPI.Status | None = None) -> bool:
        if not self.done and not self.is_complete():
            return False
        if status is not None and not self.inactive:
            copy_status(self.status, status)
        if not self.done:
            self.done = True
            recorder.remove_open(self)
            if self.on_completion:
                self.on_completion(time.perf_counter(), self.status)
        return True

    def wait(self, status=None):
        self.Wait(status)

    def test(self, status=None):
        return self.Test(status), None

    def Free(self):
        if not self.complete():
            recorder.keep_buffers(self)  # MPI may still send from its buffer
            super(Waitable, self).Free()
        self.inactive = True

    free = Free

    @classmethod
    def active_positions(cls, requests):
        return _active(requests)

    @classmethod
    def test_positions(cls, call, requests, all_of_them):
        positions = _active(requests)
        ready = _ready_positions(requests) if all_of_them else _first_ready_position(requests)
        done = len(ready) == len(positions) if all_of_them else bool(ready) or not positions
        return ready if _note_test(call, requests, done, all_of_them) else None

    @classmethod
    def wait_for_all(cls, requests, statuses=None):
        for request, status in with_statuses(requests, statuses):
            if hasattr(request, "wait_polling"):
                request.wait_polling(status, call="Waitall")
                request.inactive = True
            elif request != MPI.REQUEST_NULL:
                _, source_line = current_line()
                recorder.wait(functools.partial(request.Test, status), "Waitall", source_line)

    @classmethod
    def wait_for_some(cls, call, requests):
        _, source_line = current_line()
        text, need = _describe(requests)
        positions = _active(requests)
        ready: list[int] = []

        def done() -> bool:
            ready[:] = _first_ready_position(requests)
            return not positions or bool(ready)

        recorder.wait(done, f"{call} for any of {text}", source_line, need)
        return ready

    @classmethod
    def take_back(cls, request, status=None):
        if hasattr(request, "complete"):
            _test_once(request, status)
            request.inactive = True


# --- several requests; what was given back once counts as inactive, as MPI.REQUEST_NULL does --------------------------


def _active(requests: Sequence[Any]) -> list[int]:
    return [
        index
        for index, request in enumerate(requests)
        if not getattr(request, "inactive", False) and (hasattr(request, "complete") or request != MPI.REQUEST_NULL)
    ]


def _ready_positions(requests: Sequence[Any]) -> list[int]:
    return [index for index in _active(requests) if _is_complete(requests[index])]


def _first_ready_position(requests: Sequence[Any]) -> list[int]:
    """One that is done, in a list.

    A wait for some gives one at a time, too, as MPI may: what is received together and passed on one by one would
    count as if each message passed on had needed all of them, and so as more rounds than there are.
    """
    return next(([index] for index in _active(requests) if _is_complete(requests[index])), [])


def _is_complete(request: Any) -> bool:
    return request.is_complete() if hasattr(request, "is_complete") else request.Test()


def copy_status(found: MPI.Status | None, status: MPI.Status) -> None:
    """Write what a request has found into the status that the learner gave."""
    if found is not None:
        status.tomemory()[:] = found.tomemory()


def _describe(requests: Sequence[Any], all_of_them: bool = False) -> tuple[str, Need | None]:
    """What requests wait for, in words, and the need of any or of all of them."""
    active = [requests[index] for index in _active(requests)]
    text = ", ".join(getattr(request, "text", "request") for request in active)
    needs = [getattr(request, "need", None) for request in active]
    if all_of_them:
        return text, CombinedNeed(tuple(need for need in needs if need is not None), all=True)
    return text, any_of(needs)


def _note_test(call: str, requests: Sequence[Any], done: bool, all_of_them: bool = False) -> bool:
    """What a test has found; where that is nothing, the rank's recorder hears what was asked for."""
    if not done:
        text, need = _describe(requests, all_of_them)
        recorder.note_failed_test(f"{call} of {text}", need)
    return done


def _test_once(request: Any, status: MPI.Status | None = None) -> bool:
    """Look, without standing still, whether it is done."""
    if not hasattr(request, "complete"):
        return request.Test()
    recorder.by_test = True
    try:
        return request.complete(status)
    finally:
        recorder.by_test = False


def origin_text(first: SourceLine, then: SourceLine) -> str:
    """Where a request began, behind its name: " of line 3", and of which file where that is another than `then`'s."""
    if not first:
        return ""
    return f" of line {first.number}" + ("" if first.where == then.where else f" of {first.where}")


class PickledReceive(Waitable):
    """A receive of a Python object of unknown size: it takes its message when one has come.

    mpi4py's own `irecv` needs to know how large the message may be; this one asks first.
    """

    on_completion: OnCompletion

    def __init__(
        self,
        comm: "PointToPoint",
        source: int,
        tag: int,
        text: str,
        source_line: SourceLine,
        on_completion: OnCompletion,
    ) -> None:
        self.comm, self.source, self.tag = comm, source, tag
        self.text, self.source_line, self.on_completion = text, source_line, on_completion
        self.matched = self.done = source == MPI.PROC_NULL
        self.value: Any = None
        self.need = None if self.matched else comm.receive_need(source, tag)
        self.status = MPI.Status()
        self._data: np.ndarray | None = None
        self._rest: MPI.Request | None = None
        if not self.matched:
            recorder.add_open(self)

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
        recorder.remove_open(self)
        self.on_completion(time.perf_counter(), self.status)
        try:
            self.value = pickle.loads(data)
        except Exception as error:
            raise ValueError(
                f"{self.text}: the message from rank {self.status.source} is not a pickled object. "
                "Send goes with Recv, send with recv."
            ) from error

    def is_complete(self) -> bool:
        if not self.matched:
            self.comm.match_posted()
        return self.done or (self._rest is not None and self._rest.Test())

    def complete(self, status: MPI.Status | None = None) -> bool:
        if not self.is_complete():
            return False
        if not self.done:
            self._unpack()
        if status is not None and not self.inactive:
            copy_status(self.status, status)
        return True

    def wait(self, status: MPI.Status | None = None) -> Any:
        self.Wait(status)
        return self.value

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        return self.Test(status), self.value

    def Cancel(self) -> None:
        """Take no message any more."""
        if not self.matched:
            self.matched = self.done = True
            self.comm.posted.remove(self)
            recorder.remove_open(self)

    cancel = Free = free = Cancel


class SendAndReceive(Waitable):
    """What `Isendrecv` makes: a receive and a send under way, which end together."""

    def __init__(self, name: str, receive: TracedRequest, send: TracedRequest) -> None:
        self.text, self.source_line = f"{name}({_arguments(send)}, {_arguments(receive)})", send.source_line
        self._receive, self._send = receive, send
        needs = tuple(part.need for part in (send, receive) if part.need is not None)
        self.need = CombinedNeed(needs, all=True) if needs else None

    def is_complete(self) -> bool:
        sent = self._send.is_complete()
        return self._receive.is_complete() and sent

    def complete(self, status: MPI.Status | None = None) -> bool:
        return self.is_complete() and self._send.complete() and self._receive.complete(status)

    wait, test = TracedRequest.wait, TracedRequest.test

    def Free(self) -> None:
        self._send.Free()
        self._receive.Free()
        self.inactive = True

    free = Free


def _arguments(request: TracedRequest) -> str:
    """ "dest=1" of "Isendrecv(dest=1)"."""
    return request.text.partition("(")[2].removesuffix(")")


class PersistentRequest(Waitable):
    """What `Send_init` and `Recv_init` make: each `Start` begins the nonblocking call anew.

    It takes the place of `MPI.Prequest`, in `mpi4py.MPI` too.
    """

    _active: TracedRequest | None = None

    def __init__(self, call: str, begin: Callable[[], TracedRequest]) -> None:
        self._begin = begin
        recorder.add_resource(self, call)

    def Start(self) -> None:
        """Begin.

        Raises:
            ValueError: what was begun before is not complete.
        """
        if self._active is not None and not self._active.inactive:
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
    def source_line(self) -> SourceLine:  # type: ignore[override] # as what it has started
        return self._active.source_line if self._active else NO_LINE

    @property
    def need(self) -> Need | None:  # type: ignore[override] # as what it has started
        return self._active.need if self._active else None

    def wait_polling(self, status: Any = None, call: str = "Wait") -> None:
        if self._active is not None:
            self._active.wait_polling(status, call)

    @property
    def inactive(self) -> bool:
        return self._active is None or self._active.inactive

    @inactive.setter
    def inactive(self, value: bool) -> None:
        if self._active is not None:
            self._active.inactive = value

    def is_complete(self) -> bool:
        return self._active is None or self._active.is_complete()

    def complete(self, status: MPI.Status | None = None) -> bool:
        return self._active is None or self._active.complete(status)

    def Free(self) -> None:
        recorder.remove_resource(self)
        if self._active is not None and not self._active.inactive:
            recorder.keep_buffers(self._active)

    wait, test, free = Waitable.Wait, Waitable.Test, Free
