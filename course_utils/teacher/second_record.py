"""A second record of a rank's messages, beside the recorder, which the learner's code can reach and change.

In a sandbox nobody watches who bypasses the communicator that records: the wrappers here note it. They are put beneath
mpi4py's own methods, where the plain communicator and MPI's classes lead as well, and keep each event as it was
recorded. Whoever looks for them in the process can take them away again, as `docs/grading.md` says: this record
catches tricks that take a few lines, and no forger who has read this file.
"""

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from mpi4py import MPI

from course_utils.ranks.engine.reply import Reply
from course_utils.trace.events import Event
from course_utils.trace.recorder import Recorder

_COURSE = __name__.partition(".")[0]
_PLAIN = (MPI.Comm, MPI.Intracomm, MPI.Win)
_LOCAL_CALLS = (
    *("Attach_", "Call_errhandler", "Clone", "Compare", "Create", "Delete_", "Detach_", "Disconnect", "Dup", "Free"),
    *("Get_", "Idup", "Is_", "Set_", "Shared_query", "Split", "Abort", "fromhandle", "free", "py2f", "f2py", "tompi"),
)
"""How the names of calls begin that carry nothing of the learner's from rank to rank."""
_FROM_C = ("MPI_", "PMPI_", "MPIX_")
_SOCKETS = ("socket.bind", "socket.connect")


class SecondRecord:
    """What is recorded from outside the recorder, in one process; to be made once, before any cell runs."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._bypassed: list[str] = []
        self._in_task = False
        self._clock = time.perf_counter
        self._keep_events()
        for owner in _PLAIN:
            self._note_calls_of(owner)
        sys.addaudithook(self._hear)  # nothing in the process can take it away

    def begin(self) -> None:
        """A task begins."""
        self._events, self._bypassed, self._in_task = [], [], True

    def complete(self, reply: Reply) -> Reply:
        """The reply with the events as they were recorded, and with what went past the recorder."""
        kept = self._events[: len(reply.events)] if reply.leaves_threads else self._events
        if kept != reply.events[: len(kept)] or len(kept) < len(reply.events):
            self._note("a changed record of its messages")
            reply.events = kept
        self._in_task = False
        reply.bypassed = tuple(self._bypassed)
        return reply

    def _note(self, what: str) -> None:
        if self._in_task and what not in self._bypassed:
            self._bypassed.append(what)

    def _keep_events(self) -> None:
        plain = Recorder.add

        @wraps(plain)
        def add(recorder: Recorder, *given: Any, **named: Any) -> None:
            before = recorder.events
            number = len(before)
            plain(recorder, *given, **named)
            if not _calls_from_course():
                self._note("`recorder.add`")
            if time.perf_counter is not self._clock:
                self._note("a changed clock")
            if recorder.events is before and len(before) > number:
                self._events.append(before[number])

        setattr(Recorder, add.__name__, add)

    def _note_calls_of(self, owner: type) -> None:
        names = _names_of(owner)
        for name, call in list(names.items()):
            if callable(call) and not name.startswith(("_", *_LOCAL_CALLS)):
                names[name] = self._noted(name, call)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

    def _noted(self, name: str, call: Callable) -> Callable:
        @wraps(call)
        def noted(*given: Any, **named: Any) -> Any:
            if not _calls_from_course():
                self._note(f"`{name}` of a communicator that is not the course's")
            return call(*given, **named)

        return noted

    def _hear(self, event: str, given: tuple) -> None:
        """Python's own report of what the process does; called for every import and every file, so it is short."""
        if event == "ctypes.dlsym" and str(given[1]).startswith(_FROM_C):
            self._note(f"`{given[1]}` from C")
        elif event in _SOCKETS:
            self._note("a socket")


def _names_of(owner: type) -> dict[str, Any]:
    """A class's own names, also those of a class in C, which Python shows to be read alone."""
    return gc.get_referents(vars(owner))[0]


def _calls_from_course() -> bool:
    """Whether a wrapper was called by a module of the course."""
    return str(sys._getframe(2).f_globals.get("__name__")).partition(".")[0] == _COURSE
