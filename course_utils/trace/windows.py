"""One-sided communication that can be seen and left: `MPI.Win` with every wait polled.

What all ranks of a window call together (to make, fence and free it) is a collective in the books. For the rest, locks
and the epochs of Post, Start, Complete and Wait, MPI does not tell whom a rank waits for: only that it waits is told.
"""

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from course_utils.trace.in_thread import InThread
from course_utils.trace.recorder import here, recorder

_Win = MPI.Win


class TracedWin(MPI.Win):
    """Takes the class's place in `mpi4py.MPI`.

    Attributes:
        comm: the traced communicator on which the window was made.
    """

    comm: Any = None

    @classmethod
    def _made(cls, call: str, comm: MPI.Intracomm, make: Callable[[MPI.Intracomm], MPI.Win]) -> MPI.Win:
        if not hasattr(comm, "inner"):
            return make(comm)
        comm.meet(f"Win.{call}")
        plain = make(comm.inner)
        window = cls(plain)
        window.comm, window.plain = comm, plain  # the plain one holds the memory
        return window

    @classmethod
    def Create(cls, memory, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._made("Create", comm, lambda inner: _Win.Create(memory, disp_unit, info, inner))

    @classmethod
    def Create_dynamic(cls, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._made("Create_dynamic", comm, lambda inner: _Win.Create_dynamic(info, inner))

    @classmethod
    def Allocate(cls, size, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._made("Allocate", comm, lambda inner: _Win.Allocate(size, disp_unit, info, inner))

    @classmethod
    def Allocate_shared(cls, size, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._made("Allocate_shared", comm, lambda inner: _Win.Allocate_shared(size, disp_unit, info, inner))

    # --- what all ranks call together -------------------------------------------------------------------------------

    def Fence(self, assertion=0):
        self._meet("Fence")
        super().Fence(assertion)

    def Free(self):
        self._meet("Free")
        super().Free()

    def _meet(self, call: str) -> None:
        if self.comm is not None:
            self.comm.meet(f"Win.{call}")

    # --- what some ranks call ---------------------------------------------------------------------------------------

    def Wait(self):
        recorder.wait(super().Test, "Win.Wait", here()[1])

    def _polled(self, text: str, call: Callable[[], Any]) -> None:
        waiting = InThread(call)
        recorder.wait(waiting.is_completed, text, here()[1])
        waiting.wait()

    def Lock(self, rank, lock_type=MPI.LOCK_EXCLUSIVE, assertion=0):
        plain = super().Lock
        self._polled(f"Win.Lock(rank={rank})", lambda: plain(rank, lock_type, assertion))

    def Unlock(self, rank):
        plain = super().Unlock
        self._polled(f"Win.Unlock(rank={rank})", lambda: plain(rank))

    def Flush(self, rank):
        plain = super().Flush
        self._polled(f"Win.Flush(rank={rank})", lambda: plain(rank))

    def Lock_all(self, assertion=0):
        plain = super().Lock_all
        self._polled("Win.Lock_all", lambda: plain(assertion))

    def Unlock_all(self):
        self._polled("Win.Unlock_all", super().Unlock_all)

    def Start(self, group, assertion=0):
        plain = super().Start
        self._polled("Win.Start", lambda: plain(group, assertion))

    def Complete(self):
        self._polled("Win.Complete", super().Complete)
