"""Threads that stand in for greenlets where a rank needs a thread of its own: torch keeps state for each thread.

Which numbers need gradients, what a backward pass has begun, the default group: torch holds all this by thread. So each
virtual rank that uses torch is a thread. Still only one of them runs at a time, and goes on until it hands over to
another, by the scheduler's order: nothing depends on the operating system's.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from course_utils.ranks.virtual.stand_in import on_a_rank
from course_utils.ranks.virtual.virtual_time import Left

_LOOK = 0.1
"""Seconds between looks whether the learner has interrupted."""


class RankThread:
    """A function in a thread of its own, which is gone on with as a greenlet is: by `switch`, or by `throw`."""

    def __init__(self, work: Callable[[], None], main: "MainThread") -> None:
        self._work, self._main = work, main
        self._turn = threading.Semaphore(0)
        self._error: type[BaseException] | None = None
        self._thread: threading.Thread | None = None
        self._over = False

    def switch(self) -> None:
        """The thread that calls stands still, and this one goes on. Comes back when somebody switches to the caller."""
        caller, self._main.running = self._main.running, self
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="virtual rank")
            self._thread.start()
        else:
            self._turn.release()
        caller.stand_still()

    def throw(self, error: type[BaseException]) -> None:
        """Go on with this one, where an error is raised in the call of `switch` in which it stands still."""
        self._error = error
        self.switch()

    def stand_still(self) -> None:
        """Wait until somebody switches to this one."""
        self._turn.acquire()
        if self._error:
            error, self._error = self._error, None
            raise error

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in this thread, which runs."""
        assert self._thread and self._thread.ident, "it has begun"
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
        )

    def join(self) -> None:
        """Wait until the thread, whose work is over, has ended."""
        if self._thread is not None:
            self._thread.join()

    def __bool__(self) -> bool:
        return self._thread is not None and not self._over

    def _run(self) -> None:
        try:
            with on_a_rank():
                self._work()
        finally:
            self._over = True
            self._main.running = self._main
            self._main.turn.release()


class MainThread:
    """The thread that has started the ranks, as one of those that are gone on with.

    Attributes:
        running: whose turn it is.
    """

    def __init__(self) -> None:
        self.turn = threading.Semaphore(0)
        self.running: RankThread | MainThread = self

    def switch(self) -> None:
        """As `RankThread.switch`."""
        caller, self.running = self.running, self
        self.turn.release()
        caller.stand_still()

    def stand_still(self) -> None:
        """Wait until somebody switches to this one; a learner who interrupts means the rank that runs."""
        error = None
        while True:
            try:
                while not self.turn.acquire(timeout=_LOOK):
                    pass
                break
            except BaseException as raised:
                if isinstance(self.running, RankThread):
                    self.running.interrupt()
                if self.running is self or not isinstance(raised, KeyboardInterrupt):
                    error = raised
        if error is not None:
            raise error


@contextmanager
def rank_threads(make: type[RankThread] = RankThread) -> Iterator[tuple[Callable, MainThread]]:
    """What makes a thread of a function, and the thread that calls; at the end none of those that were made is left."""
    main, made = MainThread(), []

    def carry(work: Callable[[], None]) -> RankThread:
        made.append(make(work, main))
        return made[-1]

    try:
        yield carry, main
    finally:
        for thread in made:
            if thread:  # the scheduler itself was interrupted
                thread.throw(Left)
            if not thread:  # else it catches whatever is raised in it
                thread.join()
