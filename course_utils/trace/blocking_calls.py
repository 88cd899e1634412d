"""A call that blocks by itself, in a thread: whoever wants its result can ask whether it is there, and can leave."""

import threading
from collections.abc import Callable
from typing import Any

from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import Need


class ThreadedCall:
    """A call under way."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._result = call, None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"{OWN_THREADS}call")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except Exception as error:
            self._error = error

    def is_completed(self) -> bool:
        """Has the call returned, or raised?"""
        return not self._thread.is_alive()

    def wait(self) -> Any:
        """What the completed call gave back; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


_abandoned: list[ThreadedCall] = []


def call_in_thread(call: Callable[[], Any], text: str, need: Need | None = None) -> Any:
    """What a blocking call of MPI gives back, waited for so that it can be seen, and left.

    Args:
        text, need: as `Recorder.wait`'s.
    """
    waiting = ThreadedCall(call)
    try:
        recorder.wait(waiting.is_completed, text, current_line()[1], need)
    except KeyboardInterrupt:
        _abandoned.append(waiting)
        raise
    return waiting.wait()


def has_abandoned_calls() -> bool:
    """Does a thread sit in a call of MPI that was left? It computes for ever, and nobody can end it."""
    _abandoned[:] = [waiting for waiting in _abandoned if not waiting.is_completed()]
    return bool(_abandoned)
