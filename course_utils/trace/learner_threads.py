"""The threads that a learner's code has started on this rank: which still live, and which of them can go on by itself.

A thread outlives the function that started it, and the cell. As long as it lives, it may still send what others wait
for. A thread that waits in `Thread.join`, or for a `Condition` without a time limit, cannot go on by itself: a
different thread of its process has to wake it. `Event.wait`, `Queue.get`, `Future.result` and the exits of executors
are all waits for a `Condition` or for the end of a thread.
"""

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import thread as executor_threads
from contextlib import suppress
from types import FrameType
from typing import Any

OWN_THREADS = "course-"
"""How the names of the trace's own threads begin."""
_DATA_THREADS = (
    "multiprocessing.queues",
    "multiprocessing.resource_sharer",
    "concurrent.futures.process",
    "torch.utils.data",
    "torch._inductor",
    "tqdm",
    "tensorboard",
    "ipykernel",
    "ipyparallel",
    "IPython",
    "zmq",
    "tornado",
)
"""Modules whose threads run no learner's code: those of a DataLoader with workers, of a compiler, of a bar."""
_WAKES_NOBODY = ("tqdm", "tensorboard", "ipykernel", "ipyparallel", "IPython", "zmq", "tornado")
"""Those of them for which no learner's code waits."""
_STEADY = 0.1
"""Seconds for which a thread must have waited in the same place before it counts as one that has to be woken."""

_JOIN: Any = getattr(threading.Thread, "_wait_for_tstate_lock", threading.Thread.join)  # the former until Python 3.12


class LearnerThreads:
    """Tells a learner's threads from those that were there before, of the call under way and of earlier calls.

    Attributes:
        earlier: threads that an earlier call started, and that still lived when this one began.
    """

    def __init__(self) -> None:
        self.earlier: frozenset[threading.Thread] = frozenset()
        self._started: frozenset[threading.Thread] = frozenset()
        self._not_theirs = frozenset(threading.enumerate())
        self._steady: dict[int, tuple[tuple[int, int], float]] = {}

    def begin(self) -> None:
        """A call begins: what was started between calls is not the learner's."""
        alive = frozenset(threading.enumerate())
        self.earlier = alive & self._started
        self._not_theirs = alive - self.earlier
        self._steady = {}

    def end(self) -> None:
        """The call is over: remember the threads that it leaves behind."""
        self._started = frozenset(thread for thread in threading.enumerate() if thread not in self._not_theirs)

    def alive(self) -> list[threading.Thread]:
        """The threads that live and may run a learner's code, in this call's name or an earlier one's."""
        return [thread for thread in self._started_and_alive() if not _is_from(thread, _DATA_THREADS)]

    def wakers(self) -> list[threading.Thread]:
        """The same, with those that run no learner's code and may wake one that does."""
        return [thread for thread in self._started_and_alive() if not _is_from(thread, _WAKES_NOBODY)]

    def _started_and_alive(self) -> Iterable[threading.Thread]:
        return (
            thread
            for thread in threading.enumerate()
            if thread not in self._not_theirs
            and not thread.name.startswith(OWN_THREADS)
            and not isinstance(thread, threading._DummyThread)  # of C++, as those in which torch goes backward
        )

    def must_be_woken(self) -> set[int]:
        """The threads that have waited for a while until a different one wakes them, by their idents."""
        now, before = time.monotonic(), self._steady
        self._steady = {}
        for ident, at in _waits_for_threads().items():
            same = ident in before and before[ident][0] == at
            self._steady[ident] = before[ident] if same else (at, now)
        return {ident for ident, (_, since) in self._steady.items() if now - since >= _STEADY}

    def wait_now(self, threads: Iterable[threading.Thread]) -> bool:
        """Whether each of these waits, at this moment, until a different one wakes it."""
        asleep = _waits_for_threads()
        return all(thread.ident in asleep for thread in threads)


def _waits_for_threads() -> dict[int, tuple[int, int]]:
    """The threads that wait until a different one wakes them, by their idents: frame and instruction of each."""
    frames = sys._current_frames()
    found = {ident: (id(frame), frame.f_lasti) for ident, frame in frames.items() if waits_for_a_thread(frame)}
    frames.clear()  # this function's own is among them
    return found


def waits_for_a_thread(frame: FrameType) -> bool:
    """Whether a thread's innermost frame waits, without a time limit, until a different thread does something."""
    code = frame.f_code
    with suppress(KeyError, AttributeError):  # in a Python whose own code has changed
        if code is threading.Condition.wait.__code__:
            own = frame.f_locals
            return own["timeout"] is None and own["waiter"] in own["self"]._waiters  # who is notified is not in there
        if code is _JOIN.__code__:
            own = frame.f_locals
            return own["timeout"] in (None, -1) and own.get("block", True) and own["self"].is_alive()
        if code is executor_threads._worker.__code__:
            own = frame.f_locals
            return "work_item" not in own and own["work_queue"].empty()
        if code.co_name == "select" and frame.f_back is not None and frame.f_back.f_code.co_name == "_run_once":
            return _waits_for_a_callback(frame.f_back.f_locals)
    return False


def _waits_for_a_callback(own: Mapping[str, Any]) -> bool:
    """Whether an event loop of asyncio has nothing to do, and no time or file to wait for, until a thread calls it.

    Args:
        own: the local variables of its `_run_once`.
    """
    loop = own["self"]
    return own["timeout"] is None and not loop._ready and len(loop._selector.get_map()) <= 1  # its own pipe


def _is_from(thread: threading.Thread, modules: tuple[str, ...]) -> bool:
    """Whether a thread runs a function, or is of a class, of one of these modules."""
    owner = getattr(getattr(thread, "_target", None), "__module__", "") or type(thread).__module__
    return owner.startswith(modules)
