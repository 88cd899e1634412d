"""A process beside the notebook for functions that need no rank but themselves, or virtual ranks alone.

It comes up when it is first asked, knows no MPI, and ends with the notebook. An endless loop is broken off in it and a
crash ends it; the notebook's kernel and the learner's variables live on.
"""

import atexit
import contextlib
import functools
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.ranks.call_limit import CallLimit
from course_utils.ranks.deferred_interrupts import deferred_interrupts
from course_utils.ranks.ending import STOPPED_BY_USER, BrokenOff, Ending
from course_utils.ranks.engine.reply import Reply, from_bytes, to_bytes
from course_utils.ranks.processes.exit_status import end_text
from course_utils.ranks.processes.fault_dump import last_line
from course_utils.ranks.processes.forking import ONE_THREAD
from course_utils.ranks.processes.installation import CHECKOUT
from course_utils.ranks.processes.ranks_folder import MARK
from course_utils.system import cpu_seconds, memory_kills, wants_to_run
from course_utils.trace.activity import ActivityFile
from course_utils.words import capital

_STUBBORN = 3.0
"""Seconds after which a process that ignores interrupts is ended."""
_COMES_UP = 60.0
"""Seconds within which it is there, on a machine that is busy."""
_POLL_SECONDS = 0.2


@dataclass
class WorkerTask:
    """What the process is asked to do: call functions, each packed with its arguments, for ranks of these numbers.

    Attributes:
        calls: (rank, function, arguments), both as bytes.
        together: on virtual ranks, one for each call; else one after the other, without a communicator.
        seconds: after which no further call begins.
        path: of the notebook's imports.
    """

    calls: list[tuple[int, bytes, bytes]]
    together: bool = False
    seconds: float = math.inf
    path: list[str] = field(default_factory=lambda: [part for part in sys.path if part and Path(part).is_dir()])

    @property
    def who(self) -> str:
        """Who ends where the process does."""
        return "the process of the virtual ranks" if self.together else "the process in which your function ran"


@dataclass
class WorkerAnswer:
    """What came of a task.

    Attributes:
        replies: in the order of its calls, as many as came to an end; as bytes while they travel.
        cause: why it was broken off, if it was.
        rejected: why they do not begin.
    """

    replies: list[Any]
    cause: BrokenOff | None = None
    rejected: str = ""


class Worker:
    """The process, as the notebook sees it."""

    _process: subprocess.Popen
    _line: Connection
    _folder: tempfile.TemporaryDirectory
    _activity: ActivityFile
    _kills: int

    def __init__(self) -> None:
        self._is_up = False

    def answer(self, task: WorkerTask, limit: float) -> WorkerAnswer:
        """What comes of a task; never raises for what its functions do.

        Args:
            limit: seconds of processor time after which it is broken off, see `call_limit`.

        Raises:
            CourseError: the process does not come up, or its virtual ranks reject the task.
        """
        data = to_bytes(task)
        if not self._send(data):  # it has ended since the last task
            self.stop()
            self._send(data)
        cause = self._wait(task, limit)
        try:
            if not self._line.poll(0):
                raise EOFError
            answer: WorkerAnswer = from_bytes(self._line.recv_bytes())
        except (EOFError, OSError):
            return self._lost_answer(task, cause)
        if answer.rejected:
            raise CourseError(answer.rejected)
        return WorkerAnswer([from_bytes(reply) for reply in answer.replies], cause or answer.cause)

    def stop(self) -> None:
        """End it; the next task starts a new one."""
        if not self._is_up:
            return
        self._line.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
        self._is_up = False

    def _send(self, data: bytes) -> bool:
        with deferred_interrupts():
            if not self._is_up:
                self._start()
            try:
                self._line.send_bytes(data)
            except OSError:
                return False
            return True

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="course-process-", ignore_cleanup_errors=True)
        self._activity = ActivityFile(activity_file(Path(self._folder.name)))
        self._line, theirs = Pipe()
        self._kills = memory_kills()
        own_course = "import sys; sys.path.insert(0, sys.argv[3])"  # before any that lies in the folder at hand
        serve = "from course_utils.ranks.offline.worker_process import serve; sys.path.append(sys.path.pop(0))"
        code = f"{own_course}; {serve}; serve(*sys.argv[1:3])"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno()), self._folder.name, str(CHECKOUT)],
            env={**os.environ, **ONE_THREAD, MARK: self._folder.name, "MPLBACKEND": "agg", "TQDM_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # what interrupts the notebook does not reach it
        )
        self._is_up = True
        theirs.close()
        try:
            is_ready = self._line.poll(_COMES_UP) and self._line.recv_bytes()
        except (EOFError, OSError):
            is_ready = False
        if not is_ready:
            self.stop()
            raise CourseError("The process that runs checks did not start. `course.doctor()` looks for the reason.")

    def _wait(self, task: WorkerTask, limit: float) -> BrokenOff | None:
        """Wait for the answer, or the end of the process; why the task was broken off, if it was."""
        time_limit = CallLimit(limit, lambda _: self._computed(), lambda _: wants_to_run(self._process.pid))
        try:
            while not self._line.poll(_POLL_SECONDS):
                if cause := time_limit.reason_to_end({0: self._activity.read()}):
                    return self._break_off(task, cause)
        except KeyboardInterrupt:
            return self._break_off(task, STOPPED_BY_USER)
        return None

    def _computed(self) -> float:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            return cpu_seconds(self._process.pid)
        return 0.0

    def _break_off(self, task: WorkerTask, cause: BrokenOff) -> BrokenOff:
        with deferred_interrupts():
            until = time.monotonic() + _STUBBORN
            while time.monotonic() < until and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                if self._line.poll(_POLL_SECONDS):
                    return cause
            self._process.kill()
        text = f"{cause.text} {capital(task.who)} did not react when it was told to stop, and had to be ended."
        return BrokenOff(Ending.RANK_ENDED, text)

    def _lost_answer(self, task: WorkerTask, cause: BrokenOff | None) -> WorkerAnswer:
        status = self._process.wait()
        if not cause:
            source_line = last_line(fault_file(Path(self._folder.name)))
            text = end_text(task.who, 128 - status if status < 0 else status, self._kills, source_line)
            cause = BrokenOff(Ending.RANK_ENDED, text)
        self.stop()
        return WorkerAnswer([Reply(rank, "lost") for rank, _, _ in task.calls], cause)


def activity_file(folder: Path) -> Path:
    """Where the process says that a function runs, or none."""
    return folder / "activity"


def fault_file(folder: Path) -> Path:
    """Where the process writes at which line it crashed."""
    return folder / "faults.txt"


@functools.cache
def shared_worker() -> Worker:
    """The one of this notebook."""
    process = Worker()
    atexit.register(process.stop)
    return process
