"""What the process beside the notebook does: it calls the functions that come, and sends back what came of them."""

import contextlib
import faulthandler
import os
import shutil
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.ranks.engine.output import captured
from course_utils.ranks.engine.process_settings import settings_kept
from course_utils.ranks.engine.reply import Raised, Reply, from_bytes, line_of, not_unpacked, packed, raised, to_bytes
from course_utils.ranks.offline.worker_client import LoneAnswer, LoneTask, activity_of, faults_of
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from course_utils.trace.activity import ActivityFile
from course_utils.trace.recorder import recorder


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
    with faults_of(Path(folder)).open("w") as faults:
        faulthandler.enable(faults)
        threading.Thread(target=_end_with, args=[os.getppid(), folder], daemon=True).start()
        recorder.activity = ActivityFile(activity_of(Path(folder)))
        line = Connection(int(descriptor))
        line.send_bytes(b"there")
        with contextlib.suppress(EOFError, OSError):
            while True:
                task: LoneTask = from_bytes(line.recv_bytes())
                sys.path += [path for path in task.path if path not in sys.path]
                answer = _answered(task, _Interrupts(), Path(folder))
                recorder.activity.begun = False
                line.send_bytes(answer)
    shutil.rmtree(folder, ignore_errors=True)


def _end_with(parent: int, folder: str) -> None:
    """End with the notebook, also where a function runs on for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _answered(task: LoneTask, interrupts: _Interrupts, folder: Path) -> bytes:
    if task.together:
        with settings_kept():
            return to_bytes(_on_virtual_ranks(task, interrupts))
    until, done = time.monotonic() + task.seconds, []
    for rank, function, arguments in task.calls:
        with settings_kept():
            done.append(_performed(rank, function, arguments, interrupts, folder))
        if done[-1].kind == "interrupted" or time.monotonic() > until:
            break
    return to_bytes(LoneAnswer(list(map(packed, done))))


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
        recorder.begin_learners()
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


def _on_virtual_ranks(task: LoneTask, interrupts: _Interrupts) -> LoneAnswer:
    ranks = VirtualRanks(len(task.calls))
    arguments = [from_bytes(own) for _, _, own in task.calls]
    interrupts.heeded = True
    try:
        with contextlib.suppress(Exception):
            from_bytes(task.calls[0][1])  # which imports what it needs, before the learner's time begins
        recorder.begin_learners()
        function: Any = _Travelling(task.calls[0][1])
        replies, cause = ranks.replies(function, arguments)
    except CourseError as error:
        return LoneAnswer([], rejected=str(error))
    except KeyboardInterrupt:
        return LoneAnswer([packed(Reply(rank, "interrupted")) for rank, _, _ in task.calls])
    finally:
        interrupts.heeded = False
    return LoneAnswer(list(map(packed, replies)), cause)
