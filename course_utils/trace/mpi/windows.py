"""One-sided communication that can be seen and left: `MPI.Win` with every wait polled.

What all ranks of a window call together (to make, fence and free it) is a collective in the ledger.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread, start_and_leave, wait_for_abandoned_calls
from course_utils.trace.mpi.meetings import meetings
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import CombinedNeed, Lock

_Win = MPI.Win
_held: dict[tuple[str, int | None], Callable[[], None]] = {}
"""What gives back the locks that this rank holds; None for those of all ranks."""
_RELEASE_SECONDS = 1.0


def release_locks() -> None:
    """Give back what a run that was broken off has locked, so that other ranks' calls end that wait for it."""
    for unlock in _held.values():
        start_and_leave(unlock)
    _held.clear()
    wait_for_abandoned_calls(_RELEASE_SECONDS)


class TracedWin(MPI.Win):
    """Takes the class's place in `mpi4py.MPI`.

    Attributes:
        comm: the window's own copy of the communicator on which it was made.
    """

    comm: Any = None
    plain: MPI.Win
    _origins: Sequence[int] = ()
    _targets: Sequence[int] = ()

    @property
    def label(self) -> str:
        """The window's name in the ledger."""
        return self.comm.label

    @property
    def _members(self) -> list[int]:
        return self.comm.members

    @classmethod
    def _make(cls, call: str, comm: Any, make: Callable[[MPI.Intracomm], MPI.Win]) -> MPI.Win:
        if not hasattr(comm, "inner"):
            return make(comm)
        own = comm.private_copy(f"Win.{call}")
        recorder.add_uncounted(f"Win.{call}")  # nor what goes through it: `Put`, `Get` and `Accumulate`
        plain = call_in_thread(partial(make, own.inner), f"Win.{call}")
        window = cls(plain)
        window.comm, window.plain = own, plain  # the plain one holds the memory
        return recorder.add_resource(window, f"Win.{call}")

    @classmethod
    def Create(cls, memory, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._make("Create", comm, lambda inner: _Win.Create(memory, disp_unit, info, inner))

    @classmethod
    def Create_dynamic(cls, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._make("Create_dynamic", comm, lambda inner: _Win.Create_dynamic(info, inner))

    @classmethod
    def Allocate(cls, size, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._make("Allocate", comm, lambda inner: _Win.Allocate(size, disp_unit, info, inner))

    @classmethod
    def Allocate_shared(cls, size, disp_unit=1, info=MPI.INFO_NULL, comm=MPI.COMM_SELF):
        return cls._make("Allocate_shared", comm, lambda inner: _Win.Allocate_shared(size, disp_unit, info, inner))

    # --- what all ranks call together -------------------------------------------------------------------------------

    def Fence(self, assertion=0):
        self._wait_for_all_ranks("Fence")
        super().Fence(assertion)

    def Free(self):
        self._wait_for_all_ranks("Free")
        recorder.remove_resource(self)
        super().Free()
        if self.comm is not None:
            self.comm.Free()

    def _wait_for_all_ranks(self, call: str) -> None:
        if self.comm is not None:
            self.comm.wait_for_all_ranks(f"Win.{call}")

    # --- what some ranks call: locks, and the epochs of Post, Start, Complete and Wait --------------------------------

    def Lock(self, rank, lock_type=MPI.LOCK_EXCLUSIVE, assertion=0):
        lock, unlock = Lock(self.label, rank, lock_type == MPI.LOCK_EXCLUSIVE), partial(super().Unlock, rank)
        make = partial(super().Lock, rank, lock_type, assertion)
        call_in_thread(make, f"Win.Lock(rank={rank})", lock, undo=unlock)
        recorder.ledger.locks[self.label, rank] = lock
        _held[self.label, rank] = unlock

    def Unlock(self, rank):
        _held.pop((self.label, rank), None)
        call_in_thread(partial(super().Unlock, rank), f"Win.Unlock(rank={rank})")
        recorder.ledger.locks.pop((self.label, rank), None)

    def Flush(self, rank):
        call_in_thread(partial(super().Flush, rank), f"Win.Flush(rank={rank})")

    def Lock_all(self, assertion=0):
        unlock = super().Unlock_all
        call_in_thread(partial(super().Lock_all, assertion), "Win.Lock_all", undo=unlock)
        _held[self.label, None] = unlock

    def Unlock_all(self):
        _held.pop((self.label, None), None)
        call_in_thread(super().Unlock_all, "Win.Unlock_all")

    # In the ledger a Post is a message to each origin, which Start receives, and a Complete one to each target.

    def Post(self, group, assertion=0):
        self._origins = self.comm.ranks_of(group)
        for origin in self._origins:
            recorder.ledger.add_send(f"{self.label}/post", self._members, origin, 0)
        super().Post(group, assertion)
        meetings.tell(self._origins, f"{self.label} post")

    def Start(self, group, assertion=0):
        self._targets = self.comm.ranks_of(group)
        need = self._receives_from("post", self._targets)
        meetings.wait(self._targets, f"{self.label} post", "Win.Start", need)
        call_in_thread(partial(super().Start, group, assertion), "Win.Start")
        self._note_received("post", self._targets)

    def Complete(self):
        for target in self._targets:
            recorder.ledger.add_send(f"{self.label}/complete", self._members, target, 0)
        call_in_thread(super().Complete, "Win.Complete")

    def Wait(self):
        recorder.wait(super().Test, "Win.Wait", current_line()[1], self._receives_from("complete", self._origins))
        self._note_received("complete", self._origins)

    def _receives_from(self, what: str, ranks: Sequence[int]) -> CombinedNeed:
        receive = partial(recorder.ledger.add_receive, f"{self.label}/{what}", self._members)
        return CombinedNeed(tuple(receive(rank, 0) for rank in ranks), all=True)

    def _note_received(self, what: str, ranks: Sequence[int]) -> None:
        for rank in ranks:
            recorder.ledger.add_received(f"{self.label}/{what}", rank, 0)
