"""Where a rank is that cannot answer, for it sits in C code: read from what Python's faulthandler writes on SIGUSR1."""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from course_utils.trace.activity import IMPORTS
from course_utils.trace.recorder import is_learner_code, line_text

_SECONDS = 0.5
_FRAME = re.compile(r'^ +File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_ENTRANCES = ("run_learner_code", "run_code", "_run_task")
"""Functions below which a learner's code runs: a call of `ranks.run`, a cell, and what makes them ready."""


def find_line(file: Path, send_signal: Callable[[int], None]) -> str:
    """The learner's line in which a process is, or `IMPORTS`.

    Args:
        file: into which it writes its dumps.
        send_signal: sends it a signal.
    """
    before = file.stat().st_size if file.exists() else 0
    send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.02)
        dump = file.read_text(errors="replace")[before:] if file.exists() else ""
        if line := IMPORTS if _is_importing(dump) else learner_line(dump):
            return line
    return ""


def last_line(file: Path) -> str:
    """The learner's line in which a process was when a signal ended it, such as SIGABRT or SIGSEGV; "" if none did."""
    _, fatal, dump = file.read_text(errors="replace").rpartition("Fatal Python error") if file.exists() else ("",) * 3
    return learner_line(dump) if fatal else ""


def learner_line(dump: str) -> str:
    """The innermost line of the learner's code in a dump of all threads; "" where there is none."""
    own = ((path, int(line)) for path, line, _ in _learners_stack(dump) if is_learner_code(path))
    return next((line_text(path, line) for path, line in own), "")


def _is_importing(dump: str) -> bool:
    return any(path.startswith("<frozen importlib") for path, _, _ in _learners_stack(dump))


def _learners_stack(dump: str) -> list[tuple[str, str, str]]:
    """File, line and function of what a learner's code has called, the innermost first; empty where it does not run."""
    for stack in dump.split("\n\n"):
        frames = _FRAME.findall(stack)
        for depth, (_, _, function) in enumerate(frames):
            if function in _ENTRANCES:
                return frames[:depth]
    return []
