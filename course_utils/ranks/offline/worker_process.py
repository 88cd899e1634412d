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
from course_utils.ranks.engine.output import capture_prints
from course_utils.ranks.engine.process_settings import keep_settings
from course_utils.ranks.engine.reply import (
    Raised,
    Reply,
    describe_exception,
    from_bytes,
    learner_line,
    pack_reply,
    to_bytes,
    unpacking_failure,
)
from course_utils.ranks.offline.worker_client import WorkerAnswer, WorkerTask, activity_file, fault_file
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
    with fault_file(Path(folder)).open("w") as faults:
        faulthandler.enable(faults)
        threading.Thread(target=_end_with, args=[os.getppid(), folder], daemon=True).start()
        recorder.activity = ActivityFile(activity_file(Path(folder)))
        line = Connection(int(descriptor))
        line.send_bytes(b"there")
        with contextlib.suppress(EOFError, OSError):
            while True:
                task: WorkerTask = from_bytes(line.recv_bytes())
                sys.path += [path for path in task.path if path not in sys.path]
                answer = _do_task(task, _Interrupts(), Path(folder))
                recorder.activity.begun = False
                line.send_bytes(answer)
    shutil.rmtree(folder, ignore_errors=True)


def _end_with(parent: int, folder: str) -> None:
    """End with the notebook, also where a function runs on for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _do_task(task: WorkerTask, interrupts: _Interrupts, folder: Path) -> bytes:
    if task.together:
        with keep_settings():
            return to_bytes(_on_virtual_ranks(task, interrupts))
    until, done = time.monotonic() + task.seconds, []
    for rank, function, arguments in task.calls:
        with keep_settings():
            done.append(_run_and_capture(rank, function, arguments, interrupts, folder))
        if done[-1].kind == "interrupted" or time.monotonic() > until:
            break
    return to_bytes(WorkerAnswer(list(map(pack_reply, done))))


def _run_and_capture(rank: int, function: bytes, arguments: bytes, interrupts: _Interrupts, folder: Path) -> Reply:
    with capture_prints(folder / f"output-{rank}.txt") as printed:
        reply = _run_task(rank, function, arguments, interrupts)
    reply.output = printed.text()
    return reply


def _run_task(rank: int, function: bytes, arguments: bytes, interrupts: _Interrupts) -> Reply:
    own: tuple = ()
    try:
        interrupts.heeded = True
        try:
            called, own = from_bytes(function), from_bytes(arguments)
        except Exception as error:
            return unpacking_failure(rank, error)
        recorder.begin_function()
        reply = Reply(rank, "returned", value=called(*own))
        interrupts.heeded = False
    except KeyboardInterrupt as error:
        interrupts.heeded = False
        reply = Reply(rank, "interrupted", error=Raised("KeyboardInterrupt", "", learner_line(error)))
    except BaseException as error:
        interrupts.heeded = False
        reply = Reply(rank, "raised", error=describe_exception(error))
    finally:
        interrupts.heeded = False
    reply.arguments = own
    return reply


class _PackedFunction:
    """A function on the way: whoever unpickles this gets the function itself."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple:
        return from_bytes, (self._data,)


def _on_virtual_ranks(task: WorkerTask, interrupts: _Interrupts) -> WorkerAnswer:
    ranks = VirtualRanks(len(task.calls))
    arguments = [from_bytes(own) for _, _, own in task.calls]
    interrupts.heeded = True
    try:
        with contextlib.suppress(Exception):
            from_bytes(task.calls[0][1])  # which imports what it needs, before the learner's time begins
        recorder.begin_function()
        function: Any = _PackedFunction(task.calls[0][1])
        replies, cause = ranks.replies(function, arguments)
    except CourseError as error:
        return WorkerAnswer([], rejected=str(error))
    except KeyboardInterrupt:
        return WorkerAnswer([pack_reply(Reply(rank, "interrupted")) for rank, _, _ in task.calls])
    finally:
        interrupts.heeded = False
    return WorkerAnswer(list(map(pack_reply, replies)), cause)
