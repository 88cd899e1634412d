"""Interrupts that do no harm in a rank: they reach a learner's code alone, and never in the middle of an import."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Coroutine, Iterator
from types import FrameType

from course_utils.ranks.engine.reply import describe_exception
from course_utils.trace.activity import CLEANUP, IMPORTS, RUNNING
from course_utils.trace.recorder import StopAsked, recorder


def run_learner_code(function, *args, **kwargs):
    """Call a learner's function. An interrupt is let through while this frame, or IPython's, is on the stack."""
    with hide_event_loop():
        return function(*args, **kwargs)


def run_coroutine(coroutine: Coroutine) -> object:
    """Run a cell that awaits something."""
    return run_learner_code(asyncio.run, coroutine)


@contextlib.contextmanager
def hide_event_loop() -> Iterator[None]:
    """Inside, learners may run event loops of their own, as in a script: asyncio allows none within another, ours."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio.set_event_loop(loop)
        asyncio._set_running_loop(loop)


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: cut off there, half of it would be left behind."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _runs_learners_code(frame: FrameType | None) -> bool:
    while frame is not None:
        below = frame.f_back
        if frame.f_code is run_learner_code.__code__:
            return True
        if frame.f_code.co_name == "_call_on_rank":  # a call of the notebook's, outside the learner's part of it
            return False
        called_by = below.f_code.co_name if below is not None else ""
        if called_by in ("run_code", "do_apply") and frame.f_code.co_name.startswith("<"):
            return True
        frame = below
    return False


def on_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise in the learner's code only: an interrupt in the middle of ipyparallel's own would lose a message.

    Nor in an import: one that is cut off leaves half a module behind. The notebook hears of it, and asks again.
    """
    if is_importing(frame):
        if recorder.activity:
            recorder.activity.write(RUNNING, IMPORTS)
    elif _runs_learners_code(frame):
        raise KeyboardInterrupt
    elif recorder.activity and recorder.in_call:
        recorder.activity.write(RUNNING, CLEANUP)


def print_threads_error(error: "threading.ExceptHookArgs") -> None:
    """Print what a thread of the learner's has raised, in a line; nothing where it was only asked to stop."""
    if error.exc_value is not None and not isinstance(error.exc_value, (SystemExit, StopAsked)):
        print(f"In a thread: {describe_exception(error.exc_value)}", file=sys.stderr)
