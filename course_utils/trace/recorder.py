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
from course_utils.trace.ledger import Books
from course_utils.trace.nvtx_ranges import nvtx_range
from course_utils.trace.wait_graph import Meeting, Need, any_of

MAX_EVENTS = 100_000  # about 10 MB; a loop that runs on forever does not fill the memory
_SPIN_SECONDS = 0.002  # poll at full speed for so long, then with growing pauses
_LONGEST_PAUSE = 0.001
_IN_VAIN = 0.2  # seconds of tests in vain, and of nothing else, after which a rank says what it tests for

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_PLUMBING = tuple(_PACKAGE + part for part in ("trace", "ranks", "checks", "teacher", "system", "gpu_seats"))
_CHECKS = re.compile(
    r"/course_utils/(.*/)?checks/"
)  # on a rank they have the path that they had where they were packed
_LIBRARIES = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")})


class CodeLine(NamedTuple):
    """A line of the learner's code, as the place where an operation was called."""

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


NOWHERE = CodeLine("", 0)
"""Where no line of the learner's is being run."""


class StopAsked(KeyboardInterrupt):
    """Raised in a rank that waits when the notebook has asked it to stop waiting."""


class OpenOperation(Protocol):
    """A nonblocking operation that is not complete; `by_learner`: whether the learner's code must wait for it."""

    text: str
    place: CodeLine
    by_learner: bool


class Recorder:
    """Events of this rank since `begin`, and its activity file where it has one.

    Attributes:
        notes: what went well by luck only: "nobody waits for Isend(dest=1)".
        uncounted: the names of calls, in order, that may have moved something of which there is no event.
        made: what was made and must be freed, by its id, each with its name and line.
        only_looks: whether what now ends is found so by a test, or by a wait for any of several; see `Event.awaited`.
        left: what this rank has left at the notebook's wish, where C++ code may have made another error of it.
    """

    def __init__(self) -> None:
        self.rank, self._thread = 0, get_ident()
        self.began = time.perf_counter()
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.uncounted: list[str] = []
        self.made: dict[int, tuple[Any, str]] = {}
        self.open: dict[int, OpenOperation] = {}
        self.only_looks = False
        self._abandoned: list[object] = []  # MPI may still write into their buffers: they must not be freed
        self.activity: ActivityFile | None = None
        self.books = Books()
        self.left = ""
        self._tested: dict[str, Need | None] = {}  # what was tested in vain since anything else was done
        self._tested_since = 0.0

    def begin(self, rank: int, fresh: bool = True) -> None:
        """Forget the last run and start the clock of a new one.

        `fresh`: on a fresh communicator, on which nothing can be on its way.
        """
        self.rank, self.began, self.events, self._thread = rank, time.perf_counter(), [], get_ident()
        self._abandoned += self.open.values()
        self.open, self.left, self.notes, self.uncounted, self.made = {}, "", [], [], {}
        if fresh:
            self.books.begin()
        self.has_moved()
        if self.activity:
            self.activity.ask_to_stop(False)
            self.activity.write(RUNNING)

    def begin_learners(self) -> None:
        """The learner's function begins now: only what comes from here on counts as its time."""
        self.began = time.perf_counter()
        if self.activity:
            self.activity.begun = True

    def end(self) -> None:
        """The run is over; the rank is free."""
        self.has_moved()
        if self.activity:
            self.activity.begun = False
            self.activity.write(IDLE, look=self.books.look(None, self.open.values()))
            self.activity.ask_to_stop(False)

    def opened(self, request: OpenOperation) -> None:
        """A nonblocking operation has begun."""
        self.has_moved()
        self.open[id(request)] = request

    def has_made(self, thing: Any, call: str) -> Any:
        """Something that must be freed, which is given back."""
        self.made[id(thing)] = thing, f"{call}{here()[1]}"
        return thing

    def has_freed(self, thing: Any) -> None:
        """It is freed."""
        self.made.pop(id(thing), None)

    def keep(self, request: object) -> None:
        """Hold what MPI may still read or write, though nobody will ever wait for it."""
        self.closed(request)
        self._abandoned.append(request)

    def closed(self, request: object) -> None:
        """It has completed, and its completion was seen."""
        self.open.pop(id(request), None)

    def does_not_count(self, call: str) -> None:
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
        self.has_moved()
        if len(self.events) < MAX_EVENTS:
            awaited = not self.only_looks and get_ident() == self._thread
            event = (self.rank, name, kind, peer, tag, size, start, end, line, comm, number, holds, awaited, agreement)
            self.events.append(Event._make(event))

    def add_collective(
        self, name: str, agreement: Agreement, need: Meeting, start: float, end: float, size: int, line: int | None
    ) -> None:
        """Record a collective; `agreement`, under the name of the call that was made, may be another than `need`'s."""
        books = need.communicator, need.number
        self.add(name, "collective", start, end, None, None, size, line, *books, agreement=agreement)

    def tested_in_vain(self, text: str, need: Need | None) -> None:
        """A test has found that what it asks for has not come. Arguments as `wait`'s."""
        if text not in self._tested:
            self._tested_since = time.perf_counter()
        self._tested[text] = need
        if self.activity and self._tested_since and time.perf_counter() - self._tested_since > _IN_VAIN:
            self._tested_since = 0.0  # told once
            need = any_of(self._tested.values())
            words = f"{' and '.join(self._tested)}{here()[1]}"
            self.activity.write(TESTING, words, self.books.look(need, self.open.values()))

    def has_moved(self) -> None:
        """Something was done that is no test in vain."""
        if self._tested:
            if not self._tested_since and self.activity:
                self.activity.write(RUNNING)
            self._tested = {}

    def wait(self, done: Callable[[], bool], text: str, place: CodeLine = NOWHERE, need: Need | None = None) -> None:
        """Return when `done()`; leave with `StopAsked` when the notebook asks to.

        Args:
            text, place: what waits, in words, and where in the code.
            need: what must happen before it can be done; None where that is not known.
        """
        self.has_moved()
        if done():
            return
        activity, began, told = self.activity, time.perf_counter(), False
        try:
            while not done():
                if activity and activity.asked_to_stop:
                    raise StopAsked(f"{text}{place}")
                waited = time.perf_counter() - began
                if waited < _SPIN_SECONDS:
                    system.let_others_run()
                elif activity and not told:
                    told = True
                    look = self.books.look(need, self.open.values()) if need else b""
                    activity.write(WAITING, f"{text}{place}", look)
                else:
                    time.sleep(min(_LONGEST_PAUSE, 0.03 * waited))  # so that no wait gets much longer by it
        except KeyboardInterrupt:
            self._abandoned.append(done)  # which holds the request, and so the buffers
            raise
        if told and activity:
            activity.write(RUNNING)


recorder = Recorder()


@cache
def is_learners(filename: str) -> bool:
    """Is this file the learner's, or the taught library's, rather than plumbing?"""
    if filename.startswith((*_PLUMBING, "<frozen")) or filename.endswith((".pyx", ".pxi")) or _CHECKS.search(filename):
        return False  # the last two are what mpi4py was compiled from, named without a folder
    return filename.startswith(_PACKAGE) or not filename.startswith(_LIBRARIES)


def learners_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the learner's own code, outwards from `frame`."""
    while frame is not None and not is_learners(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@cache
def place_of(filename: str, line: int) -> str:
    """ "line 7 of your cell", or of the file that it is in."""
    return f"line {line} of {CodeLine(filename, line).where}"


def warning_text(message: object, category: type[Warning], filename: str, lineno: int, line: object = None) -> str:
    """A warning as a rank prints it: "RuntimeWarning: overflow encountered in exp, line 2 of your cell"."""
    return f"{category.__name__}: {message}, {place_of(filename, lineno)}\n"


def is_cell(filename: str) -> bool:
    """Was this code typed into a notebook's cell?"""
    return "ipykernel_" in filename or filename.startswith("<")


def here() -> tuple[int | None, CodeLine]:
    """The learner's line that is being run: its number alone, and with its file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not is_learners(frame.f_code.co_filename):  # as `learners_frame`
        frame = frame.f_back
    if frame is None:
        return None, NOWHERE
    return _line_and_place(frame.f_code.co_filename, frame.f_lineno)


@cache
def _line_and_place(filename: str, line: int) -> tuple[int, CodeLine]:
    return line, CodeLine(filename, line)


other_clocks: list[tuple[Callable[[], float], Callable[[str, float, float], None]]] = []
"""Of ranks whose time is not this process's, the last one holds: what reads their clock, and what records a phase."""


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Record what happens inside as a phase of this rank's work: "forward", "backward", "communication", "step".

    On a GPU it is an NVTX range, too. Ranks without processes share a thread, where their ranges would be mixed up.
    """
    now, record = other_clocks[-1] if other_clocks else (time.perf_counter, _record_phase)
    with nullcontext() if other_clocks else nvtx_range(name):
        start = now()
        try:
            yield
        finally:
            record(name, start, now())


def _record_phase(name: str, start: float, end: float) -> None:
    recorder.add(name, "phase", start, end)
