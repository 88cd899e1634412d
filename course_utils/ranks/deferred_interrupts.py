"""Presses of the stop button, held back while something is half done."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[list[bool]]:
    """Inside, the stop button interrupts nothing; gives a list of how often it was pressed.

    Half a submitted call would leave ranks waiting for the others, and half an import cannot be mended.
    """
    pressed: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
