"""A process beside the notebook for functions that need no rank but themselves, or virtual ranks alone.

It comes up when it is first asked, knows no MPI, and ends with the notebook. An endless loop is broken off in it and a
crash ends it; the notebook's kernel and the learner's variables live on.
"""

import atexit
import contextlib
import faulthandler
import functools
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.ranks.engine.output import captured
from course_utils.ranks.engine.reply import Raised, Reply, from_bytes, line_of, not_unpacked, packed, raised, to_bytes
from course_utils.ranks.failure_report import describe
from course_utils.ranks.presses import presses
from course_utils.ranks.processes.exit_status import end_text
from course_utils.ranks.processes.fault_dump import last_line
from course_utils.ranks.processes.forking import ONE_THREAD
from course_utils.ranks.processes.ranks_folder import MARK
from course_utils.ranks.run import Attempt, sendable
from course_utils.ranks.virtual_ranks import VirtualRanks
from course_utils.system import memory_kills

_STUBBORN = 3.0
"""Seconds after which a process that ignores interrupts is ended."""
_COMES_UP = 60.0
"""Seconds within which it is there, on a machine that is busy."""
_LOOK = 0.2


@dataclass
class _Task:
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
        return "the process of the virtual ranks" if self.together else "rank 0"


@dataclass
class _Answer:
    """What came of a task.

    Attributes:
        replies: in the order of its calls, as many as came to an end; as bytes while they travel.
        cause: why it was broken off, if it was.
        trouble: what virtual ranks say of it.
        rejected: why they do not begin.
    """

    replies: list[Any]
    cause: str = ""
    trouble: str | None = None
    rejected: str = ""


class LoneProcess:
    """The process, as the notebook sees it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._line: Connection | None = None
        self._folder: tempfile.TemporaryDirectory | None = None
        self._kills = 0

    def answer(self, task: _Task, limit: float) -> _Answer:
        """What comes of a task; never raises for what its functions do.

        Args:
            limit: seconds after which it is broken off.

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
            answer: _Answer = from_bytes(self._line.recv_bytes())
        except (EOFError, OSError):
            return self._lost(task, cause)
        if answer.rejected:
            raise CourseError(answer.rejected)
        replies = [from_bytes(reply) for reply in answer.replies]
        return _Answer(replies, cause, describe(replies, cause) if cause else answer.trouble)

    def stop(self) -> None:
        """End it; the next task starts a new one."""
        if self._process is None:
            return
        self._line.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
        self._process = None

    def _send(self, data: bytes) -> bool:
        with presses():
            if self._process is None:
                self._start()
            try:
                self._line.send_bytes(data)
            except OSError:
                return False
            return True

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="course-process-", ignore_cleanup_errors=True)
        self._line, theirs = Pipe()
        self._kills = memory_kills()
        course = str(Path(__file__).parents[2])
        command = "import sys; sys.path.append(sys.argv[3]); from course_utils.ranks import lone_process as here; "
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"{command}here.serve(*sys.argv[1:3])",
                str(theirs.fileno()),
                self._folder.name,
                course,
            ],
            env={**os.environ, **ONE_THREAD, MARK: self._folder.name, "MPLBACKEND": "agg", "TQDM_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # what interrupts the notebook does not reach it
        )
        theirs.close()
        try:
            there = self._line.poll(_COMES_UP) and self._line.recv_bytes()
        except (EOFError, OSError):
            there = False
        if not there:
            self.stop()
            raise CourseError("The process that runs checks did not come up. `course.doctor()` looks for the reason.")

    def _wait(self, task: _Task, limit: float) -> str:
        """Wait for the answer, or the end of the process; why the task was broken off, if it was."""
        until = time.monotonic() + limit
        try:
            while not self._line.poll(max(0.0, min(_LOOK, until - time.monotonic()))):
                if time.monotonic() > until:
                    return self._broken_off(task, f"not finished after {limit:.0f} s.")
        except KeyboardInterrupt:
            return self._broken_off(task, "stopped by you.")
        return ""

    def _broken_off(self, task: _Task, cause: str) -> str:
        with presses():
            until = time.monotonic() + _STUBBORN
            while time.monotonic() < until and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                if self._line.poll(_LOOK):
                    return cause
            self._process.kill()
        return f"{cause} {task.who} did not heed the interrupt and had to be ended."

    def _lost(self, task: _Task, cause: str) -> _Answer:
        status = self._process.wait()
        if not cause:
            place = last_line(_faults(Path(self._folder.name)))
            cause = end_text(task.who, 128 - status if status < 0 else status, self._kills, place)
        self.stop()
        replies = [Reply(rank, "lost") for rank, _, _ in task.calls]
        return _Answer(replies, cause, describe(replies, cause))


@functools.cache
def lone_process() -> LoneProcess:
    """The one of this notebook."""
    process = LoneProcess()
    atexit.register(process.stop)
    return process


def _packed(function: Callable, thing: Any) -> bytes:
    return sendable(function, lambda: to_bytes(thing))


class NoRanks:
    """Stands in for ranks where functions need no communicator: each call is made in the process, for itself."""

    def __init__(self, world_size: int = 4) -> None:
        """`world_size`: for how many ranks functions may be called, one after the other."""
        self.world_size = world_size

    def attempt(
        self, function: Callable, arguments: list[tuple], *, limit: float = 30.0, seconds: float = math.inf, **_: Any
    ) -> Attempt:
        """Call a function that may be wrong, once for each tuple of arguments; as `Ranks.attempt`."""
        given = _packed(function, function)
        calls = [(rank, given, _packed(function, own)) for rank, own in enumerate(arguments)]
        answer = lone_process().answer(_Task(calls), limit)
        left = [Reply(rank, "interrupted") for rank in range(len(answer.replies), len(arguments))]
        return Attempt([*answer.replies, *left], describe([*answer.replies, *left], answer.cause))

    def attempt_each(
        self, tasks: Sequence[tuple[Callable, tuple]], *, seconds: float = 1.0, limit: float = 30.0, **_: Any
    ) -> list[Attempt]:
        """Call functions one after the other; as `Ranks.attempt_each`."""
        calls = [(0, _packed(function, function), _packed(function, own)) for function, own in tasks]
        answer = lone_process().answer(_Task(calls, seconds=seconds), limit)
        if any(reply.kind == "lost" for reply in answer.replies):
            return []
        causes = ["" if reply.kind == "returned" else answer.cause for reply in answer.replies]
        return [Attempt([reply], describe([reply], cause)) for reply, cause in zip(answer.replies, causes, strict=True)]


class VirtualRanksApart:
    """Virtual ranks in the process, for a function that may be wrong."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def attempt(
        self,
        function: Callable,
        arguments: list[tuple],
        *,
        with_comm: bool = True,
        backend: str | None = None,
        limit: float = 30.0,
        **_: Any,
    ) -> Attempt:
        """Call the function on as many virtual ranks as there are tuples of arguments; as `Ranks.attempt`.

        Raises:
            CourseError: it asks for a group of torch.
        """
        if backend:
            raise CourseError(f"Virtual ranks have no group of torch.distributed ({backend}).")
        if not with_comm:
            return NoRanks(self.world_size).attempt(function, arguments, limit=limit)
        given = _packed(function, function)
        calls = [(rank, given, _packed(function, own)) for rank, own in enumerate(arguments)]
        answer = lone_process().answer(_Task(calls, together=True), limit)
        return Attempt(answer.replies, answer.trouble)

    def attempt_each(self, tasks: Sequence[tuple[Callable, tuple]], **options: Any) -> list[Attempt]:
        """Call functions that need no other rank, one after the other."""
        return NoRanks(self.world_size).attempt_each(tasks, **options)


# --- in the process -------------------------------------------------------------------------------------------------


class _Interrupts:
    """Turns the signal into an exception while somebody's function runs, and into nothing before and after."""

    def __init__(self) -> None:
        self.heeded = False
        signal.signal(signal.SIGINT, self._interrupted)

    def _interrupted(self, *_: Any) -> None:
        if self.heeded:
            raise KeyboardInterrupt


def serve(descriptor: str, folder: str) -> None:
    """Do the tasks that come, until nobody is left to send any."""
    import mpi4py

    mpi4py.rc.initialize = False  # this is no rank: code may import MPI, but must not start it
    with _faults(Path(folder)).open("w") as faults:
        faulthandler.enable(faults)
        threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
        line = Connection(int(descriptor))
        line.send_bytes(b"there")
        with contextlib.suppress(EOFError, OSError):
            while True:
                task: _Task = from_bytes(line.recv_bytes())
                sys.path += [path for path in task.path if path not in sys.path]
                line.send_bytes(_answered(task, _Interrupts(), Path(folder)))


def _faults(folder: Path) -> Path:
    return folder / "faults.txt"


def _end_with(parent: int) -> None:
    """End with the notebook, also where a function runs on for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _answered(task: _Task, interrupts: _Interrupts, folder: Path) -> bytes:
    if task.together:
        return to_bytes(_on_virtual_ranks(task, interrupts))
    until, done = time.monotonic() + task.seconds, []
    for rank, function, arguments in task.calls:
        done.append(_performed(rank, function, arguments, interrupts, folder))
        if done[-1].kind == "interrupted" or time.monotonic() > until:
            break
    return to_bytes(_Answer(list(map(packed, done))))


def _performed(rank: int, function: bytes, arguments: bytes, interrupts: _Interrupts, folder: Path) -> Reply:
    with captured(folder / f"output-{rank}.txt") as printed:
        reply = _perform(rank, function, arguments, interrupts)
    reply.output = printed.text()
    return reply


def _perform(rank: int, function: bytes, arguments: bytes, interrupts: _Interrupts) -> Reply:
    own: tuple = ()
    try:
        interrupts.heeded = True
        try:
            called, own = from_bytes(function), from_bytes(arguments)
        except Exception as error:
            return not_unpacked(rank, error)
        reply = Reply(rank, "returned", value=called(*own))
        interrupts.heeded = False
    except KeyboardInterrupt as error:
        interrupts.heeded = False
        reply = Reply(rank, "interrupted", error=Raised("KeyboardInterrupt", "", line_of(error)))
    except BaseException as error:
        interrupts.heeded = False
        reply = Reply(rank, "raised", error=raised(error))
    finally:
        interrupts.heeded = False
    reply.arguments = own
    return reply


class _Travelling:
    """A function on the way: whoever unpickles this gets the function itself."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple:
        return from_bytes, (self._data,)


def _on_virtual_ranks(task: _Task, interrupts: _Interrupts) -> _Answer:
    ranks = VirtualRanks(len(task.calls))
    arguments = [from_bytes(own) for _, _, own in task.calls]
    interrupts.heeded = True
    try:
        attempt = ranks.attempt(_Travelling(task.calls[0][1]), arguments)
    except CourseError as error:
        return _Answer([], rejected=str(error))
    except KeyboardInterrupt:
        return _Answer([packed(Reply(rank, "interrupted")) for rank, _, _ in task.calls])
    finally:
        interrupts.heeded = False
    return _Answer(list(map(packed, attempt.replies)), trouble=attempt.trouble)
