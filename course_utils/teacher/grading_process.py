"""A process that judges submissions, so that one which breaks it costs its own marks and nobody else's.

It lives on from submission to submission. Where it dies, or takes too long, a new one goes on with the next.
"""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType

from course_utils import settings
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.teacher.containment import SECONDS
from course_utils.teacher.grading import Grading, Mark, printable

MEMORY = 12 << 30
"""Bytes of address space."""
MARGIN = 60.0
"""Seconds beyond a submission's own in which its last verdict must have come."""
_LARGEST = 1 << 20  # bytes of one message


class GradingProcess:
    """The process, as the grader sees it: what comes from it is JSON of a bounded size."""

    _line: Connection

    def __init__(self, ranks: int, boxed: bool, unpacked: Path | None = None) -> None:
        """Args:
        unpacked: a folder of the grader's that goes, too, if the grader is killed.
        """
        self._ranks, self._boxed, self._unpacked = ranks, boxed, unpacked
        self._folder = tempfile.TemporaryDirectory(prefix="course-grade-", ignore_cleanup_errors=True)
        self._process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> "GradingProcess":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end(0 if error else 30)
        self._folder.cleanup()

    def marks_of(self, notebook: Path, name: str) -> Iterator[Mark]:
        """The marks of a submission, as they come; each exercise that it answers gets one, whatever happens.

        Raises:
            CourseError: contained ranks do not start on this machine; that is not a submission's fault.
        """
        expected = [""]
        try:
            for message in self._told_of(notebook, name):
                if "expected" in message:
                    expected = message["expected"]
                elif "error" in message:
                    raise CourseError(message["error"])
                else:
                    expected = expected[1:]
                    yield Mark(**message["mark"] | {"result": Result(message["mark"]["result"])})
            return
        except (EOFError, OSError, ValueError, KeyError, TypeError):
            why = "judging it broke the process that does so" if self._process else "it took too long to judge"
        self._end()
        for exercise in expected:
            verdict = f"{Result.WRONG} {exercise or name}: {why}; a person must look at it"
            yield Mark(name, exercise, Result.WRONG, printable(verdict), boxed=self._boxed)

    def _told_of(self, notebook: Path, name: str) -> Iterator[dict]:
        if self._process is None or not self._process.is_alive():
            self._begin()
        self._line.send_bytes(json.dumps([os.fsencode(notebook).hex(), name]).encode())
        until = time.monotonic() + SECONDS + MARGIN
        while True:
            if not self._line.poll(max(until - time.monotonic(), 0)):
                self._end()
                raise TimeoutError
            message = json.loads(self._line.recv_bytes(_LARGEST))
            if message is None:
                return
            yield message

    def _begin(self) -> None:
        self._end()
        context = multiprocessing.get_context("fork")  # all that it needs is imported already
        self._line, theirs = context.Pipe()
        given = (theirs, self._line, self._folder.name, self._ranks, self._boxed, self._unpacked)
        self._process = context.Process(target=_serve, args=given)
        self._process.start()
        theirs.close()

    def _end(self, patience: float = 0) -> None:
        """End the process, and with it every box that it has made; `patience`: seconds in which it may do so itself."""
        if self._process is not None:
            self._line.close()
            self._process.join(timeout=patience)
            self._process.kill()
            self._process.join()
            for left in Path(self._folder.name).glob("ranks-*"):  # where it was killed
                RanksFolder(left).end(grace=0.0)
        self._process = None


def _serve(
    line: Connection, other_end: Connection, folder: str, ranks: int, boxed: bool, unpacked: Path | None
) -> None:
    """Runs in the process: judge what the line names, until it is closed."""
    other_end.close()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # the threads that it had were not forked with it, and OpenMP would wait for them
    threading.Thread(target=_end_with_the_grader, args=[folder, unpacked], daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # Ctrl-C, or the terminal closed
        signal.signal(number, lambda *_: None)  # that is for the grader, after whose end this process clears away
    os.environ |= {settings.RUNTIME.name: folder, "TQDM_DISABLE": "1"}  # the grader has a bar of its own
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))

    def send(message: dict | None) -> None:
        line.send_bytes(json.dumps(message).encode())

    with Grading(ranks, boxed) as judging:
        while True:
            try:
                path, name = json.loads(line.recv_bytes(_LARGEST))
            except (EOFError, OSError):
                return
            try:
                for found in judging.marks_of(Path(os.fsdecode(bytes.fromhex(path))), name):
                    send({"mark": asdict(found)} if isinstance(found, Mark) else {"expected": found})
            except CourseError as error:
                send({"error": str(error)})
            send(None)


def _end_with_the_grader(folder: str, unpacked: Path | None) -> None:
    """Where the grader is killed, nobody else would end this process, and with it the boxes, and remove the files."""
    parent = multiprocessing.parent_process()
    assert parent
    wait([parent.sentinel])
    if unpacked:
        shutil.rmtree(unpacked, ignore_errors=True)
    deadline = time.monotonic() + 5.0
    while os.path.exists(folder) and time.monotonic() < deadline:  # the other thread may be writing into it
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
