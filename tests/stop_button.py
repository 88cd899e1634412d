"""The stop button of a notebook, pressed by a test while its own main thread waits for ranks."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from course_utils.ranks.connection import Connection
from course_utils.ranks.engine_connection import EngineConnection


@contextlib.contextmanager
def stop_button(seconds: float = 0.3, ready: Callable[[], bool] | None = None) -> Iterator[None]:
    """Inside, the button is pressed so long after `ready`; without it, after the main thread has begun to wait."""
    ready = ready or main_thread_waits_for_ranks
    over = threading.Event()

    def press() -> None:
        while not ready():
            if over.wait(0.05):
                return
        if not over.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        yield
    finally:
        over.set()
        presser.join()


def main_thread_waits_for_ranks() -> bool:
    """Whether the course waits there for what ranks do."""
    waiting = (Connection.wait_for.__code__, EngineConnection.wait_for_tasks.__code__)
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame and frame.f_code not in waiting:
        frame = frame.f_back
    return frame is not None
