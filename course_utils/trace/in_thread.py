"""A call that blocks by itself, in a thread: whoever wants its result can ask whether it is there, and can leave."""

import threading
from collections.abc import Callable
from typing import Any

from course_utils.trace.books import OURS


class InThread:
    """A call under way."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._result, self._error = call, None, None
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"{OURS}call")
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
