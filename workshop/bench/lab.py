"""How long `make lab` takes on an environment that is there: from the command to JupyterLab's address."""

import os
import signal
import subprocess
import time

from course_utils.errors import CourseError
from course_utils.syllabus import ROOT
from workshop.bench.rows import Row, seconds_row

TARGET = 4.0
"""Seconds that a second start may take on two cores."""
NO_BROWSER = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
SAID = "JupyterLab is at"


def run(runs: int) -> list[Row]:
    """Start and stop JupyterLab `runs` times as `make lab` does; once before, uncounted, to have its files at hand."""
    seconds = [second_start() for _ in range(runs + 1)][1:]
    return [seconds_row("lab", "make lab, from the command to the address", seconds, TARGET)]


def second_start() -> float:
    """Seconds until `make lab` says where JupyterLab is.

    Raises:
        CourseError: it ended without saying so.
    """
    environment = {name: value for name, value in os.environ.items() if name not in NO_BROWSER}
    began = time.perf_counter()
    process = subprocess.Popen(
        ["make", "--silent", "lab"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines = []
    try:
        for line in process.stdout or ():
            lines.append(line)
            if SAID in line:
                return time.perf_counter() - began
    finally:
        end(process)
    raise CourseError(f"make lab did not come up: {''.join(lines[-3:]).strip()}")


def end(process: subprocess.Popen) -> None:
    """Stop the server, and return when nothing of it is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=20)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
