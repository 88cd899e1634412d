"""Sees that a backward pass waits inside torch's C++ code, where no wait of ours can be polled.

DistributedDataParallel starts all-reduces while its backward pass runs, and waits for their futures at its end, in C++.
A thread looks from outside: the main thread is in the autograd engine, and the process has computed nothing for five
looks. Then the rank waits for those futures, tells so, and can be asked to leave them.
"""

import sys
import threading
import time
from typing import Protocol

from torch.autograd.graph import _engine_run_backward

from course_utils.trace.activity import RUNNING, WAITING
from course_utils.trace.books import OURS
from course_utils.trace.recorder import recorder
from course_utils.trace.waiting import Need, Some

_LOOK = 0.02  # seconds from one look to the next
_STILL = 5  # looks in a row at which nothing was computed
_COMPUTES = 0.1  # of the time between two looks: less is no computing


class _Work(Protocol):
    text: str
    place: str
    need: Need | None

    def leave(self) -> None:
        """Who waits for it goes on, with an error."""


_open: list[_Work] = []
_watch: threading.Thread | None = None


def _in_the_engine() -> bool:
    """Is the main thread in the autograd engine, behind which C++ code runs?"""
    frame = sys._current_frames().get(threading.main_thread().ident)
    return frame is not None and frame.f_code is _engine_run_backward.__code__


def look_after(work: _Work) -> None:
    """From now on somebody may wait for this operation inside a backward pass."""
    global _watch
    _open.append(work)
    if recorder.activity and (_watch is None or not _watch.is_alive()):
        _watch = threading.Thread(target=_look_after_all, daemon=True, name=f"{OURS}backward")
        _watch.start()


def _look_after_all() -> None:
    still, computed, told = 0, time.process_time(), None
    while works := [work for work in _open if id(work) in recorder.open]:
        _open[:] = works
        time.sleep(_LOOK)
        if recorder.activity.asked_to_stop:
            recorder.left = f"{works[0].text}{works[0].place}"
            for work in works:
                work.leave()
            break
        now = time.process_time()
        waits = now - computed < _COMPUTES * _LOOK and _in_the_engine()
        still, computed = still + 1 if waits else 0, now
        if still == _STILL:
            needs = tuple(work.need for work in works)
            seen = recorder.books.look(Some(needs, all=True), recorder.open.values())
            told = recorder.activity.write(
                WAITING, f"{works[0].text}{works[0].place}", seen, after=recorder.activity.progress
            )
        elif not waits and told:
            recorder.activity.write(RUNNING, after=told)
            told = None
