"""The recorder of this process: collects events, and makes every wait one that can be seen and left."""

import os
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple, Protocol

from course_utils import system
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, ActivityFile
from course_utils.trace.events import Agreement, Event
from course_utils.trace.ledger import Ledger
from course_utils.trace.nvtx_ranges import nvtx_range
from course_utils.trace.wait_graph import Collective, Need, any_of

MAX_EVENTS = 100_000  # about 10 MB; a loop that runs on forever does not fill the memory
_SPIN_SECONDS = 0.002  # poll at full speed for so long, then with growing pauses
_LONGEST_PAUSE = 0.001
_FAILING_SECONDS = 0.2  # seconds of tests in vain, and of nothing else, after which a rank says what it tests for

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_MACHINERY = tuple(_PACKAGE + part for part in ("trace", "ranks", "checks", "teacher", "system", "gpu_seats"))
_CHECKS = re.compile(
    r"/course_utils/(.*/)?checks/"
)  # on a rank they have the path that they had where they were packed
_LIBRARIES = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")})


class SourceLine(NamedTuple):
    """A line of the learner's code, that called an operation."""

    file: str
    number: int

    def __bool__(self) -> bool:
        return bool(self.file)

    @property
    def where(self) -> str:
        """ "your cell", or the name of the file."""
        return "your cell" if is_cell(self.file) else Path(self.file).name

    def __str__(self) -> str:
        """To put behind an operation's name: ", line 7 of your cell"."""
        return f", line {self.number} of {self.where}" if self else ""


NO_LINE = SourceLine("", 0)
"""Where no line of the learner's is being run."""


class StopAsked(KeyboardInterrupt):
    """Raised in a rank that waits when the notebook has asked it to stop waiting."""


class OpenOperation(Protocol):
    """A nonblocking operation that is not complete; `by_learner`: whether the learner's code must wait for it."""

    text: str
    source_line: SourceLine
    by_learner: bool


class Recorder:
    """Events of this rank since `begin`, and its activity file where it has one.

    Attributes:
        notes: what went well by luck only: "no call waits for Isend(dest=1)".
        uncounted: the names of calls, in order, that may have moved something of which there is no event.
        resources: what was made and must be freed, by its id, each with its name and line.
        by_test: whether what now ends is found so by a test, or by a wait for any of several; see `Event.awaited`.
        abandoned_wait: what this rank stopped waiting for when asked; C++ code may have made a different error of it.
    """

    def __init__(self) -> None:
        self.rank, self._thread = 0, get_ident()
        self.began = time.perf_counter()
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.uncounted: list[str] = []
        self.resources: dict[int, tuple[Any, str]] = {}
        self.open: dict[int, OpenOperation] = {}
        self.by_test = False
        self._abandoned: list[object] = []  # MPI may still write into their buffers: they must not be freed
        self.activity: ActivityFile | None = None
        self.ledger = Ledger()
        self.abandoned_wait = ""
        self._failed_tests: dict[str, Need | None] = {}  # what was tested in vain since anything else was done
        self._failing_since = 0.0

    def begin(self, rank: int, fresh: bool = True) -> None:
        """Forget the last run and start the clock of a new one.

        `fresh`: on a fresh communicator, on which nothing can be on its way.
        """
        self.rank, self.began, self.events, self._thread = rank, time.perf_counter(), [], get_ident()
        self._abandoned += self.open.values()
        self.open, self.abandoned_wait, self.notes, self.uncounted, self.resources = {}, "", [], [], {}
        if fresh:
            self.ledger.begin()
        self.note_progress()
        if self.activity:
            self.activity.ask_to_stop(False)
            self.activity.write(RUNNING)

    def begin_function(self) -> None:
        """The learner's function begins now: only what comes from here on counts as its time."""
        self.began = time.perf_counter()
        if self.activity:
            self.activity.begun = True

    def end(self) -> None:
        """The run is over; the rank is free."""
        self.note_progress()
        if self.activity:
            self.activity.begun = False
            self.activity.write(IDLE, snapshot=self.ledger.snapshot(None, self.open.values()))
            self.activity.ask_to_stop(False)

    def add_open(self, request: OpenOperation) -> None:
        """A nonblocking operation has begun."""
        self.note_progress()
        self.open[id(request)] = request

    def add_resource(self, thing: Any, call: str) -> Any:
        """Something that must be freed, which is given back."""
        self.resources[id(thing)] = thing, f"{call}{current_line()[1]}"
        return thing

    def remove_resource(self, thing: Any) -> None:
        """It is freed."""
        self.resources.pop(id(thing), None)

    def keep_buffers(self, request: object) -> None:
        """Hold what MPI may still read or write, though nobody will ever wait for it."""
        self.remove_open(request)
        self._abandoned.append(request)

    def remove_open(self, request: object) -> None:
        """It has completed, and its completion was seen."""
        self.open.pop(id(request), None)

    def add_uncounted(self, call: str) -> None:
        """A call is made that may move something without an event."""
        if call not in self.uncounted:
            self.uncounted.append(call)

    def add(
        self,
        name: str,
        kind: str,
        start: float,
        end: float,
        peer: int | None = None,
        tag: int | None = None,
        size: int = 0,
        line: int | None = None,
        comm: str = "",
        number: int = 0,
        holds: str = "",
        agreement: Agreement | None = None,
    ) -> None:
        """Record an event; `start` and `end` are readings of `time.perf_counter`, the rest is `Event`'s.

        What the learner's other threads wait for does not hold up the rank.
        """
        self.note_progress()
        if len(self.events) < MAX_EVENTS:
            awaited = not self.by_test and get_ident() == self._thread
            event = (self.rank, name, kind, peer, tag, size, start, end, line, comm, number, holds, awaited, agreement)
            self.events.append(Event._make(event))

    def add_collective(
        self, name: str, agreement: Agreement, need: Collective, start: float, end: float, size: int, line: int | None
    ) -> None:
        """Record a collective; `agreement`, under the name of the call that was made, may be another than `need`'s."""
        ledger = need.communicator, need.number
        self.add(name, "collective", start, end, None, None, size, line, *ledger, agreement=agreement)

    def note_failed_test(self, text: str, need: Need | None) -> None:
        """A test has found that what it asks for has not come. Arguments as `wait`'s."""
        if text not in self._failed_tests:
            self._failing_since = time.perf_counter()
        self._failed_tests[text] = need
        if self.activity and self._failing_since and time.perf_counter() - self._failing_since > _FAILING_SECONDS:
            self._failing_since = 0.0  # told once
            need = any_of(self._failed_tests.values())
            text_of_tests = f"{' and '.join(self._failed_tests)}{current_line()[1]}"
            self.activity.write(TESTING, text_of_tests, self.ledger.snapshot(need, self.open.values()))

    def note_progress(self) -> None:
        """Something was done that is no test in vain."""
        if self._failed_tests:
            if not self._failing_since and self.activity:
                self.activity.write(RUNNING)
            self._failed_tests = {}

    def wait(
        self, done: Callable[[], bool], text: str, source_line: SourceLine = NO_LINE, need: Need | None = None
    ) -> None:
        """Return when `done()`; leave with `StopAsked` when the notebook asks to.

        Args:
            text, source_line: what waits, in words, and where in the code.
            need: what must happen before it can be done; None where that is not known.
        """
        self.note_progress()
        if done():
            return
        activity, began, reported = self.activity, time.perf_counter(), False
        posted: list[Any] = [request for request in self.open.values() if getattr(request, "matched", None) is False]
        try:
            while not done():
                for receive in posted:  # of an object: it takes its message while the rank waits for something else
                    receive.is_complete()
                if activity and activity.asked_to_stop:
                    raise StopAsked(f"{text}{source_line}")
                waited = time.perf_counter() - began
                if waited < _SPIN_SECONDS:
                    system.let_others_run()
                elif activity and not reported:
                    reported = True
                    snapshot = self.ledger.snapshot(need, self.open.values()) if need else b""
                    activity.write(WAITING, f"{text}{source_line}", snapshot)
                else:
                    time.sleep(min(_LONGEST_PAUSE, 0.03 * waited))  # so that no wait gets much longer by it
        except KeyboardInterrupt:
            self._abandoned.append(done)  # which holds the request, and so the buffers
            raise
        if reported and activity:
            activity.write(RUNNING)


recorder = Recorder()


@cache
def is_learner_code(filename: str) -> bool:
    """Is this file the learner's, or the taught library's, rather than plumbing?"""
    if filename.startswith((*_MACHINERY, "<frozen")) or filename.endswith((".pyx", ".pxi")) or _CHECKS.search(filename):
        return False  # the last two are what mpi4py was compiled from, named without a folder
    return filename.startswith(_PACKAGE) or not filename.startswith(_LIBRARIES)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the learner's own code, outwards from `frame`."""
    while frame is not None and not is_learner_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@cache
def line_text(filename: str, line: int) -> str:
    """ "line 7 of your cell", or of the file that it is in."""
    return f"line {line} of {SourceLine(filename, line).where}"


def warning_text(message: object, category: type[Warning], filename: str, lineno: int, line: object = None) -> str:
    """A warning as a rank prints it: "RuntimeWarning: overflow encountered in exp, line 2 of your cell"."""
    return f"{category.__name__}: {message}, {line_text(filename, lineno)}\n"


def is_cell(filename: str) -> bool:
    """Was this code typed into a notebook's cell?"""
    return "ipykernel_" in filename or filename.startswith("<")


def current_line() -> tuple[int | None, SourceLine]:
    """The learner's line that is being run: its number alone, and with its file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not is_learner_code(frame.f_code.co_filename):  # as `learner_frame`
        frame = frame.f_back
    if frame is None:
        return None, NO_LINE
    return _number_and_line(frame.f_code.co_filename, frame.f_lineno)


@cache
def _number_and_line(filename: str, line: int) -> tuple[int, SourceLine]:
    return line, SourceLine(filename, line)


virtual_clocks: list[tuple[Callable[[], float], Callable[[str, float, float], None]]] = []
"""Of ranks whose time is not this process's, the last one holds: what reads their clock, and what records a phase."""


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Record what happens inside as a phase of this rank's work: "forward", "backward", "communication", "step".

    On a GPU it is an NVTX range, too. Ranks without processes share a thread, where their ranges would be mixed up.
    """
    now, record = virtual_clocks[-1] if virtual_clocks else (time.perf_counter, _record_phase)
    with nullcontext() if virtual_clocks else nvtx_range(name):
        start = now()
        try:
            yield
        finally:
            record(name, start, now())


def _record_phase(name: str, start: float, end: float) -> None:
    recorder.add(name, "phase", start, end)
