"""Ask a rank of this machine where its code stands, without disturbing what it does: a signal would end a pause.

A thread of the rank waits at a pipe. It costs nothing until a byte comes, and answers in the rank's activity file.
"""

import contextlib
import json
import os
import threading
import time
from pathlib import Path

from course_utils.trace.activity import ActivityFile
from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.standing import Standing, standing_of_rank

_SECONDS = 0.3
"""In which a rank answers, unless C code keeps its interpreter from doing anything."""


def answer_questions(pipe: Path, activity: ActivityFile) -> None:
    """In a rank: answer whoever asks, from now on; nobody, where the disk has no pipes."""
    with contextlib.suppress(OSError):
        os.mkfifo(pipe, 0o600)
        descriptor = os.open(pipe, os.O_RDWR)  # it writes nothing, and so the pipe never ends
        name = f"{OWN_THREADS}standing"
        threading.Thread(target=_answer, args=[descriptor, activity], daemon=True, name=name).start()


def _answer(descriptor: int, activity: ActivityFile) -> None:
    with contextlib.suppress(OSError):  # the learner's code has closed every file
        while os.read(descriptor, 1):
            activity.write_standing(json.dumps(standing_of_rank()).encode())


def ask_standing(pipe: Path, activity: ActivityFile) -> Standing:
    """Where a rank's code stands; an empty answer if it cannot say so."""
    before, _ = activity.read_standing()
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return Standing()
    try:
        with contextlib.suppress(BlockingIOError):
            os.write(descriptor, b"?")
    finally:
        os.close(descriptor)
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        number, answer = activity.read_standing()
        if number != before:
            with contextlib.suppress(ValueError, TypeError):
                return Standing(*json.loads(answer))
        time.sleep(0.005)
    return Standing()
