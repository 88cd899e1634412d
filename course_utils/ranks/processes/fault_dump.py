"""Where a rank is that cannot answer, for it sits in C code: read from what Python's faulthandler writes on SIGUSR1."""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from course_utils.trace.recorder import is_learners, place_of

_SECONDS = 0.5
_FRAME = re.compile(r'^ +File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_ENTRANCES = ("run_learners", "run_code")
"""Functions below which a learner's code runs: a call of `ranks.run`, and a cell."""


def place_in_c(file: Path, tell: Callable[[int], None]) -> str:
    """The learner's line in which a process is.

    Args:
        file: into which it writes its dumps.
        tell: sends it a signal.
    """
    before = file.stat().st_size if file.exists() else 0
    tell(signal.SIGUSR1)
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.02)
        if file.exists() and (place := learners_line(file.read_text(errors="replace")[before:])):
            return place
    return ""


def last_line(file: Path) -> str:
    """The learner's line in which a process was when a signal ended it, such as SIGABRT or SIGSEGV; "" if none did."""
    _, fatal, dump = file.read_text(errors="replace").rpartition("Fatal Python error") if file.exists() else ("",) * 3
    return learners_line(dump) if fatal else ""


def learners_line(dump: str) -> str:
    """The innermost line of the learner's code in a dump of all threads; "" where there is none."""
    for stack in dump.split("\n\n"):
        frames = _FRAME.findall(stack)
        if any(function in _ENTRANCES for _, _, function in frames):
            return next((place_of(path, int(line)) for path, line, _ in frames if is_learners(path)), "")
    return ""
