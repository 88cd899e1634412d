"""Requests whose waits are polled, so that they can be seen and left, and that record when they complete."""

import pickle
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from course_utils.trace.recorder import here, recorder
from course_utils.trace.waiting import Need, Some

if TYPE_CHECKING:
    from course_utils.trace.mpi import TracedComm

# Called once, with the time of completion and the status; with inf and None for what was broken off.
Finished = Callable[[float, MPI.Status | None], None]


class TracedRequest(MPI.Request):
    """`MPI.Request` of a message through buffers, or of a collective. Takes the class's place in `mpi4py.MPI`."""

    text = ""
    place = ""
    finished: Finished | None = None
    need: Need | None = None
    done = False

    @classmethod
    def traced(
        cls, request: MPI.Request, text: str, place: str, finished: Finished, need: Need | None = None
    ) -> "TracedRequest":
        """Wrap a request that has been started; `finished` records the event, `need` is what it waits for."""
        traced = cls(request)
        traced.text, traced.place, traced.finished, traced.need = text, place, finished, need
        traced.started = request  # holds the buffer, into which MPI may write until the request is done
        recorder.opened(traced)
        return traced

    def complete(self, status: MPI.Status | None = None) -> bool:
        """Test once; on completion record the event. True ever after."""
        if self.done:
            return True
        status = status or MPI.Status()
        if not super().Test(status):
            return False
        self.done = True
        recorder.closed(self)
        if self.finished:
            self.finished(time.perf_counter(), status)
        return True

    def wait_with(self, status: MPI.Status | None = None) -> None:
        """Poll until done. Where `wait` is another call than the one that began, both are named."""
        _, place = here()
        text = self.text if place == self.place else f"Wait for {self.text}{begun(self.place, place)}"
        try:
            recorder.wait(lambda: self.complete(status), text, place, self.need)
        except KeyboardInterrupt:
            if self.finished:
                self.finished(float("inf"), None)
            raise

    def Wait(self, status=None):
        self.wait_with(status)
        return True

    def wait(self, status=None):
        self.wait_with(status)

    def Test(self, status=None):
        return self.complete(status)

    def test(self, status=None):
        return self.complete(status), None

    @classmethod
    def Waitall(cls, requests, statuses=None):
        _wait_for_all(requests)
        return True

    @classmethod
    def waitall(cls, requests, statuses=None):
        _wait_for_all(requests)
        return [request.wait() for request in requests]

    @classmethod
    def Waitany(cls, requests, status=None):
        _, place = here()
        names = ", ".join(getattr(request, "text", "request") for request in requests)
        needs = tuple(getattr(request, "need", None) for request in requests)
        need = Some(needs, all=False) if all(needs) else None
        recorder.wait(lambda: any(_complete(request) for request in requests), f"wait for any of {names}", place, need)
        return next(index for index, request in enumerate(requests) if _complete(request))

    @classmethod
    def Testall(cls, requests, statuses=None):
        return all([_complete(request) for request in requests])


def _complete(request: Any) -> bool:
    return request.complete() if hasattr(request, "complete") else request.Test()


def begun(first: str, then: str) -> str:
    """Where a request began, behind its name: " of line 3", and of which file where that is another than `then`'s."""
    words, file = first.removeprefix(", "), then.partition(" of ")[2]
    return f" of {words.removesuffix(f' of {file}')}" if words else ""


def _wait_for_all(requests: Sequence[Any]) -> None:
    for request in requests:
        if hasattr(request, "wait_with"):
            request.wait_with()
        elif request != MPI.REQUEST_NULL:
            _, place = here()
            recorder.wait(request.Test, "Waitall", place)


class PickledReceive:
    """A receive of a Python object of unknown size: it takes its message when one has come.

    mpi4py's own `irecv` needs to know how large the message may be; this one asks first.
    """

    def __init__(self, comm: "TracedComm", source: int, tag: int, text: str, place: str, finished: Finished) -> None:
        self.comm, self.source, self.tag = comm, source, tag
        self.text, self.place, self.finished = text, place, finished
        self.matched = source == MPI.PROC_NULL
        self.value: Any = None
        self.need = None if self.matched else comm.wants(source, tag)
        self.status = MPI.Status()
        recorder.opened(self)

    def try_to_match(self) -> bool:
        """Take a message that fits, if one has come."""
        if self.matched:
            return True
        message = self.comm.inner.Improbe(self.source, self.tag, self.status)
        if message is None:
            return False
        data = np.empty(self.status.Get_count(MPI.BYTE), np.uint8)
        message.Recv([data, MPI.BYTE])
        self.matched = True
        recorder.closed(self)
        self.comm.posted.remove(self)
        self.finished(time.perf_counter(), self.status)
        try:
            self.value = pickle.loads(data)
        except Exception as error:
            raise ValueError(
                f"{self.text}: the message from rank {self.status.source} is not a pickled object. "
                "Send goes with Recv, send with recv."
            ) from error
        return True

    def complete(self, status: MPI.Status | None = None) -> bool:
        if self.matched:
            return True
        self.comm.serve_posted()
        return self.matched

    def wait_with(self, status: MPI.Status | None = None) -> None:
        _, place = here()
        text = self.text if place == self.place else f"Wait for {self.text}{begun(self.place, place)}"
        try:
            recorder.wait(self.complete, text, place, self.need)
        except KeyboardInterrupt:
            self.finished(float("inf"), None)
            raise
        if status is not None:
            status.source, status.tag = self.status.source, self.status.tag

    def wait(self, status: MPI.Status | None = None) -> Any:
        self.wait_with(status)
        return self.value

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        return self.complete(), self.value

    Wait, Test = wait_with, complete
