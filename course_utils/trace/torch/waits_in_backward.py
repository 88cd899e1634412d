"""Sees that a backward pass, or a learner, waits inside torch's C++ code, where no wait of ours can be polled.

DistributedDataParallel starts all-reduces while its backward pass runs, and waits for their futures at its end, in C++.
Learners may wait for such a future as well. A thread looks from outside: the main thread is in the autograd engine, or
waits for a future, and the process has computed nothing for five looks. Then the rank waits for those futures, tells
so, and can be asked to leave them.
"""

import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Protocol

import torch
from torch.autograd.graph import _engine_run_backward

from course_utils.trace.activity import RUNNING, WAITING
from course_utils.trace.learner_threads import OWN_THREADS
from course_utils.trace.recorder import SourceLine, recorder
from course_utils.trace.wait_graph import CombinedNeed, Need

_INTERVAL = 0.02  # seconds from one look to the next
_QUIET_CHECKS = 5  # looks in a row at which nothing was computed
_BUSY_SHARE = 0.1  # of the time between two looks: less is no computing


class _Work(Protocol):
    text: str
    source_line: SourceLine
    need: Need | None
    future: Any

    def abandon(self) -> None:
        """Who waits for it goes on, with an error."""


_open: list[_Work] = []
_watcher: threading.Thread | None = None


_ENGINE = _engine_run_backward.__code__
_FUTURES = torch.futures.Future.wait.__code__, torch.futures.wait_all.__code__


def _frame_before_cpp() -> FrameType | None:
    """The main thread's, where it is in the autograd engine or waits for a future, behind which C++ code runs."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return frame if frame is not None and frame.f_code in (_ENGINE, *_FUTURES) else None


def _awaited(works: Sequence[_Work], frame: FrameType) -> tuple[Sequence[_Work], CombinedNeed]:
    """What the main thread waits for: in the engine, all works; with a future that is not one of ours, any of them."""
    in_engine = frame.f_code is _ENGINE
    own = [] if in_engine else [work for work in works if work.future is frame.f_locals.get("self")]
    return own or works, CombinedNeed(tuple(work.need for work in own or works if work.need), all=in_engine)


def watch_work(work: _Work) -> None:
    """From now on somebody may wait for this operation in C++."""
    global _watcher
    _open.append(work)
    if recorder.activity and (_watcher is None or not _watcher.is_alive()):
        _watcher = threading.Thread(target=_watch_all, daemon=True, name=f"{OWN_THREADS}backward")
        _watcher.start()


def _watch_all() -> None:
    quiet, computed, reported, activity = 0, time.process_time(), None, recorder.activity
    while activity and (works := [work for work in _open if id(work) in recorder.open]):
        _open[:] = works
        time.sleep(_INTERVAL)
        if activity.asked_to_stop:
            recorder.abandoned_wait = f"{works[0].text}{works[0].source_line}"
            for work in works:
                work.abandon()
            break
        now = time.process_time()
        frame = _frame_before_cpp()
        waits = now - computed < _BUSY_SHARE * _INTERVAL and frame is not None
        quiet, computed = quiet + 1 if waits else 0, now
        if quiet == _QUIET_CHECKS and frame is not None:
            awaited, need = _awaited(works, frame)
            snapshot = recorder.snapshot(need)
            words = f"{awaited[0].text}{awaited[0].source_line}"
            reported = activity.write(WAITING, words, snapshot, after=activity.progress)
        elif not waits and reported:
            activity.write(RUNNING, after=reported)
            reported = None
