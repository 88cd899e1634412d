"""The recorder of this process: collects events, and makes every wait one that can be seen and left."""

import os
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock, Thread, current_thread, get_ident
from types import FrameType
from typing import Any, NamedTuple, Protocol

from course_utils import system
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, ActivityFile
from course_utils.trace.call_texts import function_text
from course_utils.trace.events import Agreement, BufferLayout, Event
from course_utils.trace.learner_threads import OWN_THREADS, LearnerThreads
from course_utils.trace.ledger import Ledger
from course_utils.trace.nvtx_ranges import nvtx_range
from course_utils.trace.wait_graph import ACTING_THREADS, NO_THREADS, WAITING_THREADS, Collective, Need, any_of, renamed

MAX_EVENTS = 100_000  # about 10 MB; a loop that runs on forever does not fill the memory
_SPIN_SECONDS = 0.002  # poll at full speed for so long, then with growing pauses
_LONGEST_PAUSE = 0.001
_LOOK_SECONDS = 0.1  # how often a thread that waits looks at what the rank's others do
_FAILING_SECONDS = 0.2  # seconds of tests in vain, and of nothing else, after which a rank says what it tests for

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_MACHINERY = tuple(_PACKAGE + part for part in ("trace", "ranks", "checks", "teacher", "system", "gpu_seats"))
_CHECKS = re.compile(
    r"/course_utils/(.*/)?checks/"
)  # on a rank they have the path that they had where they were packed
_NO_FILES = "<frozen", "<string>", "<eval_with_key>"
"""What Python has compiled on its own behalf: imports, `python -c`, classes made of fields, torch's graphs."""
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


class Waiting(NamedTuple):
    """What one thread of a rank waits for.

    Attributes:
        text: the call, in words.
        where: its line, in words, and whether it is in a thread: ", line 7 of your cell".
        need: what must happen before it can be done; None where that is not known.
        call: the number of the call in which it began.
    """

    text: str
    where: str
    need: Need | None
    call: int

    def __str__(self) -> str:
        return f"{self.text}{self.where}"


class Named(Protocol):
    """A communicator; `label`: its name in the ledger."""

    label: str


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
        abandoned_wait: what this rank stopped waiting for when asked: C++ code may have made a different error of it,
            or it was a thread that waited.
        threads: those that the learner's code has started.
        reply_size: the bytes of the reply to the call that ends.
        in_call: whether a call of the notebook's is under way.
        communicator: that of the run, and the name that it gets if threads go on using it after the run.
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
        self.threads = LearnerThreads()
        self.communicator: tuple[Named, str] | None = None
        self._waits: dict[int, Waiting] = {}  # by thread
        self.reply_size = 0
        self.in_call, self._call, self._stopped_call = False, 0, -1
        self._telling = Lock()
        self._told: tuple[int, str, bytes] = IDLE, "", b""
        self._told_at: int | None = None
        self._had_threads = False
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
            self._set_aside()
            self.ledger.begin()
        self._failed_tests, self._call, self.reply_size = {}, self._call + 1, 0
        with self._telling:
            self.in_call = True
            self.threads.begin()
            if self.activity:
                self.activity.ask_to_stop(False)
                self.activity.write(RUNNING)
                self._told = RUNNING, "", b""

    def _set_aside(self) -> None:
        """Rename the last run's communicator, if threads go on using it: the next one has the same name."""
        if self.communicator and self.threads.alive():
            communicator, new = self.communicator
            old, communicator.label = communicator.label, new
            self.ledger.rename(old, new)
            for thread, wait in list(self._waits.items()):
                self._waits[thread] = wait._replace(need=renamed(wait.need, old, new))
        self.communicator = None

    def begin_function(self) -> None:
        """The learner's function begins now: only what comes from here on counts as its time."""
        self.began = time.perf_counter()
        if self.activity:
            self.activity.begun = True

    def end(self) -> None:
        """The run is over; the rank is free, but for the threads that it leaves behind."""
        self._failed_tests = {}
        self.leave_call()
        if self.activity:
            self.activity.begun = False
            if self.activity.asked_to_stop:
                self._stopped_call = self._call
            self._told_at = None
            leaves_threads = bool(self.threads.alive())  # asked first: what is told of one that then ends is told anew
            self._tell()
            self.activity.ask_to_stop(False)
            if leaves_threads:
                Thread(target=self._watch_threads, args=[self._call], daemon=True, name=f"{OWN_THREADS}threads").start()

    def leave_call(self) -> None:
        """From now on the main thread does nothing for the learner."""
        with self._telling:
            self.in_call = False
            self.threads.end()

    def leaves_threads(self) -> bool:
        """Whether threads of the learner's, which the run would leave behind, can go on by themselves."""
        alive = self.threads.alive()
        return bool(alive) and not self.threads.wait_now(alive)

    def _watch_threads(self, call: int) -> None:
        """Go on telling what the threads do that a call has left behind, until they have ended or the next begins."""
        alive = True
        while alive and self._call == call:
            time.sleep(_LOOK_SECONDS)
            alive = bool(self.threads.alive())
            self._tell()

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
        layouts: tuple[BufferLayout | None, ...] = (),
    ) -> None:
        """Record an event; `start` and `end` are readings of `time.perf_counter`, the rest is `Event`'s.

        What the learner's other threads wait for does not hold up the rank. What those of earlier calls do is no part
        of this one.
        """
        self.note_progress()
        in_main = get_ident() == self._thread
        earlier = self.threads.earlier
        if len(self.events) < MAX_EVENTS and (in_main or not earlier or current_thread() not in earlier):
            awaited = not self.by_test and in_main
            more = comm, number, holds, awaited, agreement, layouts
            self.events.append(Event._make((self.rank, name, kind, peer, tag, size, start, end, line, *more)))

    def add_collective(
        self,
        name: str,
        agreement: Agreement,
        need: Collective,
        start: float,
        end: float,
        size: int,
        line: int | None,
        layouts: tuple[BufferLayout | None, ...] = (),
    ) -> None:
        """Record a collective; `agreement`, under the name of the call that was made, may be another than `need`'s."""
        ledger = need.communicator, need.number
        self.add(name, "collective", start, end, None, None, size, line, *ledger, "", agreement, layouts)

    def note_failed_test(self, text: str, need: Need | None) -> None:
        """A test has found that what it asks for has not come. Arguments as `wait`'s."""
        if text not in self._failed_tests:
            self._failing_since = time.perf_counter()
        self._failed_tests[text] = need
        if (
            self.activity
            and self.in_call
            and self._failing_since
            and time.perf_counter() - self._failing_since > _FAILING_SECONDS
        ):
            self._failing_since = 0.0  # told once
            need = any_of(self._failed_tests.values())
            text_of_tests = f"{' and '.join(self._failed_tests)}{current_line()[1]}"
            self.activity.write(TESTING, text_of_tests, self.snapshot(need))

    def note_progress(self) -> None:
        """Something was done that is no test in vain."""
        if self._failed_tests:
            if not self._failing_since and self.activity and self.in_call:
                self.activity.write(RUNNING)
            self._failed_tests = {}

    def snapshot(self, need: Need | None) -> bytes:
        """What others may know while the main thread waits for something, or tests for it."""
        others = self._waits_of_threads(main_waits=True)
        needs = [need, *(wait.need for wait in others or [])]
        return self.ledger.snapshot(None if others is None else _any_one_of(needs), self.open.values())

    def _waits_of_threads(self, main_waits: bool) -> list[Waiting] | None:
        """What the learner's threads wait for; None where one of them, or the main one, can go on by itself.

        Args:
            main_waits: whether the main thread's own wait is known.
        """
        threads = self.threads.alive() if main_waits else self.threads.wakers()
        self._had_threads = bool(threads)
        if not threads:
            return []
        asleep = self.threads.must_be_woken()
        woken_from_cpp = any(getattr(request, "future", None) is not None for request in self.open.values())
        if not main_waits and (self._thread not in asleep or woken_from_cpp):
            return None
        waits = []
        for thread in threads:
            wait = self._waits.get(thread.ident or 0)
            is_clear = thread not in self.threads.earlier or (wait and wait.call < self._call)
            if wait and wait.need is not None and is_clear:
                waits.append(wait)
            elif wait or thread.ident not in asleep:
                return None
        return waits

    def _doing(self) -> tuple[int, str, bytes]:
        """State, text and snapshot of this rank, from what each of its threads does."""
        if not (self.in_call or self._thread in self._waits):  # where the client of ipyparallel has sent a cell
            return self._left_behind()
        main = self._waits.get(self._thread)
        others = self._waits_of_threads(main_waits=main is not None)
        waits = [*([main] if main else []), *(others or [])]
        if not waits:
            return RUNNING, "", b""
        of_this_call = [str(wait) for wait in waits if wait.call == self._call] or list(map(str, waits))
        text = " and ".join(dict.fromkeys(of_this_call))
        if main is None:
            text = f"{_wait_for_a_thread(self._thread)}{text}"
        if main and main.need is None:
            return WAITING, text, b""
        need = None if others is None else _any_one_of([wait.need for wait in waits])
        return WAITING, text, self.ledger.snapshot(need, self.open.values())

    def _left_behind(self) -> tuple[int, str, bytes]:
        """The same of a rank that has returned: which threads it has left behind."""
        waits = self._waits_of_threads(main_waits=True)
        threads = ACTING_THREADS if waits is None else WAITING_THREADS if waits else NO_THREADS
        need = _any_one_of([wait.need for wait in waits]) if waits else None
        return IDLE, str(self.reply_size or ""), self.ledger.snapshot(need, self.open.values(), threads)

    def _tell(self) -> None:
        """Write down what this rank does, where that is not what was written last."""
        with self._telling:
            if self.activity:
                doing = self._doing()
                overwritten = doing[0] != RUNNING and self.activity.progress != self._told_at
                if doing != self._told or overwritten:
                    self._told, self._told_at = doing, self.activity.write(*doing)

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
        activity, began, reported, call = self.activity, time.perf_counter(), False, self._call
        thread, look_at, stopped = get_ident(), _LOOK_SECONDS, False
        posted: list[Any] = [request for request in self.open.values() if getattr(request, "matched", None) is False]
        try:
            while not done():
                for receive in posted:  # of an object: it takes its message while the rank waits for something else
                    receive.is_complete()
                if activity and (activity.asked_to_stop or call <= self._stopped_call):
                    raise StopAsked(f"{text}{self._where(source_line)}")
                waited = time.perf_counter() - began
                if waited < _SPIN_SECONDS:
                    system.let_others_run()
                elif activity and not reported:
                    reported = True
                    self._waits[thread] = Waiting(text, self._where(source_line), need, call)
                    self._tell()
                elif reported and waited > look_at:
                    look_at = waited + _LOOK_SECONDS
                    if self._had_threads or thread != self._thread or self.threads.alive():
                        self._tell()
                else:
                    time.sleep(min(_LONGEST_PAUSE, 0.03 * waited))  # so that no wait gets much longer by it
        except KeyboardInterrupt:
            self._abandoned.append(done)  # which holds the request, and so the buffers
            stopped = thread == self._thread
            if not stopped and self.in_call:
                self.abandoned_wait = f"{text}{self._where(source_line)}"
            raise
        finally:
            if reported:
                self._waits.pop(thread, None)
                if not stopped:  # then the main thread is interrupted, if it still waits for this one
                    self._tell()

    def _where(self, source_line: SourceLine) -> str:
        """To put behind the name of a call: its line, and whether a thread of the learner's has made it."""
        where = f"{source_line}" or outside_text(sys._getframe(1))
        return where if get_ident() == self._thread else f" in a thread{where}"


def _wait_for_a_thread(thread: int) -> str:
    """What a thread has called to wait for others, to put before what these wait for: "Thread.join, line 3, for "."""
    called, frame = None, sys._current_frames().get(thread)
    own = learner_frame(frame)
    while frame is not None and frame is not own:
        called, frame = frame.f_code, frame.f_back
    if frame is None or called is None:
        return ""
    return f"{function_text(called)}{SourceLine(frame.f_code.co_filename, frame.f_lineno)}, for "


def _any_one_of(needs: list[Need | None]) -> Need | None:
    """What is needed for one thread's need to be met; None where one of them is not known."""
    combined = any_of(needs)
    return needs[0] if len(needs) == 1 else combined and replace(combined, of_threads=True)


recorder = Recorder()


def is_machinery(filename: str) -> bool:
    """Is this file part of what runs and records a learner's code?"""
    return filename.startswith(_MACHINERY)


@cache
def is_learner_code(filename: str) -> bool:
    """Is this file the learner's, or the taught library's, rather than plumbing?"""
    compiled = filename.startswith(_NO_FILES) or filename.endswith((".pyx", ".pxi"))
    if is_machinery(filename) or compiled or _CHECKS.search(filename):
        return False  # .pyx and .pxi are what mpi4py was compiled from, named without a folder
    return filename.startswith(_PACKAGE) or not filename.startswith(_LIBRARIES)


@cache
def is_taught_library(filename: str) -> bool:
    """Is this file part of the taught library, whose lines count only if no line of the learner's own is being run?"""
    return filename.startswith(_PACKAGE)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the learner's own code, outwards from `frame`; else that of the taught library."""
    taught = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_learner_code(filename):
            if not is_taught_library(filename):
                return frame
            taught = taught or frame
        frame = frame.f_back
    return taught


def outside_text(frame: FrameType | None) -> str:
    """To put behind a call outside the learner's function: that the check makes it; "" where it does not."""
    while frame is not None and not _CHECKS.search(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else ", which the check calls outside your function"


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
    frame = learner_frame(sys._getframe(1))
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
