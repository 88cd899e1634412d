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
from course_utils.trace.ledger import OURS
from course_utils.trace.recorder import CodeLine, recorder
from course_utils.trace.wait_graph import Need, Some

_LOOK = 0.02  # seconds from one look to the next
_STILL = 5  # looks in a row at which nothing was computed
_COMPUTES = 0.1  # of the time between two looks: less is no computing


class _Work(Protocol):
    text: str
    place: CodeLine
    need: Need | None
    future: Any

    def leave(self) -> None:
        """Who waits for it goes on, with an error."""


_open: list[_Work] = []
_watch: threading.Thread | None = None


_ENGINE = _engine_run_backward.__code__
_FUTURES = torch.futures.Future.wait.__code__, torch.futures.wait_all.__code__


def _frame_before_cpp() -> FrameType | None:
    """The main thread's, where it is in the autograd engine or waits for a future, behind which C++ code runs."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return frame if frame is not None and frame.f_code in (_ENGINE, *_FUTURES) else None


def _waited_for(works: Sequence[_Work], frame: FrameType) -> tuple[Sequence[_Work], Some]:
    """What the main thread waits for: in the engine, all works; with a future that is not one of ours, any of them."""
    in_engine = frame.f_code is _ENGINE
    own = [] if in_engine else [work for work in works if work.future is frame.f_locals.get("self")]
    return own or works, Some(tuple(work.need for work in own or works if work.need), all=in_engine)


def look_after(work: _Work) -> None:
    """From now on somebody may wait for this operation in C++."""
    global _watch
    _open.append(work)
    if recorder.activity and (_watch is None or not _watch.is_alive()):
        _watch = threading.Thread(target=_look_after_all, daemon=True, name=f"{OURS}backward")
        _watch.start()


def _look_after_all() -> None:
    still, computed, told, activity = 0, time.process_time(), None, recorder.activity
    while activity and (works := [work for work in _open if id(work) in recorder.open]):
        _open[:] = works
        time.sleep(_LOOK)
        if activity.asked_to_stop:
            recorder.left = f"{works[0].text}{works[0].place}"
            for work in works:
                work.leave()
            break
        now = time.process_time()
        frame = _frame_before_cpp()
        waits = now - computed < _COMPUTES * _LOOK and frame is not None
        still, computed = still + 1 if waits else 0, now
        if still == _STILL and frame is not None:
            awaited, need = _waited_for(works, frame)
            seen = recorder.books.look(need, recorder.open.values())
            words = f"{awaited[0].text}{awaited[0].place}"
            told = activity.write(WAITING, words, seen, after=activity.progress)
        elif not waits and told:
            activity.write(RUNNING, after=told)
            told = None
