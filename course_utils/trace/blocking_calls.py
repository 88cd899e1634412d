"""A call that blocks by itself, in a thread: whoever wants its result can ask whether it is there, and can leave."""

import threading
import time
from collections.abc import Callable
from typing import Any

from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import Need


class ThreadedCall:
    """A call under way."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._result: Any = None
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._done, self._undo = False, _do_nothing
        self._thread = threading.Thread(target=self._run, args=[call], daemon=True, name=f"{OWN_THREADS}call")
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self._result = call()
            with self._lock:
                self._done, undo = True, self._undo
            undo()
        except Exception as error:
            self._error = error

    def leave(self, undo: Callable[[], Any]) -> None:
        """Wait no longer for the call: `undo` is called as soon as it is done."""
        with self._lock:
            self._undo, done = undo, self._done
        if done:
            undo()

    def is_completed(self) -> bool:
        """Has the call returned, or raised?"""
        return not self._thread.is_alive()

    def wait(self) -> Any:
        """What the completed call gave back; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


def _do_nothing() -> None:
    """What is to be undone of most calls."""


_abandoned: list[ThreadedCall] = []


def call_in_thread(
    call: Callable[[], Any], text: str, need: Need | None = None, undo: Callable[[], Any] = _do_nothing
) -> Any:
    """What a blocking call of MPI gives back, waited for so that it can be seen, and left.

    Args:
        text, need: as `Recorder.wait`'s.
        undo: undoes what the call has done, where it was left and ends all the same.
    """
    waiting = ThreadedCall(call)
    try:
        recorder.wait(waiting.is_completed, text, current_line()[1], need)
    except KeyboardInterrupt:
        _abandoned.append(waiting)
        waiting.leave(undo)
        raise
    return waiting.wait()


def has_abandoned_calls() -> bool:
    """Does a thread sit in a call of MPI that was left? It computes for ever, and nobody can end it."""
    _abandoned[:] = [waiting for waiting in _abandoned if not waiting.is_completed()]
    return bool(_abandoned)


def start_and_leave(call: Callable[[], Any]) -> None:
    """Begin a blocking call of MPI for which nobody waits."""
    _abandoned.append(ThreadedCall(call))


def wait_for_abandoned_calls(seconds: float) -> None:
    """Return when they have ended, or the time is over."""
    until = time.monotonic() + seconds
    while has_abandoned_calls() and time.monotonic() < until:
        time.sleep(0.002)
