"""Ranks that meet without a communicator of their own: each tells the others that it has come.

Afterwards a call of MPI for which exactly they are needed, and which cannot be left, finishes for certain. What they
tell each other goes over a communicator that no learner has.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mpi4py import MPI

from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import Need


class Meetings:
    """The meetings of this rank."""

    def __init__(self) -> None:
        self._comm: MPI.Intracomm | None = None
        self._heard: Counter[tuple[int, str]] = Counter()
        self._sent: list[MPI.Request] = []

    def begin(self, comm: MPI.Intracomm) -> None:
        """Use this communicator of all ranks, which nobody else uses."""
        self._comm = comm

    def tell(self, ranks: Iterable[int], key: str) -> None:
        """Tell other ranks, numbered as in the run, that this one has come to what `key` names."""
        if self._comm is not None:
            self._sent = [request for request in self._sent if not request.Test()]
            self._sent += [self._comm.isend(key, rank) for rank in ranks if rank != self._comm.rank]

    def wait(self, ranks: Iterable[int], key: str, text: str, need: Need | None) -> None:
        """Return when all these ranks have told that they have come; arguments as `Recorder.wait`'s."""
        comm = self._comm
        if comm is None:
            return
        others = [(rank, key) for rank in ranks if rank != comm.rank]

        def all_have_come() -> bool:
            while message := comm.improbe(status=(status := MPI.Status())):
                self._heard[status.source, message.recv()] += 1
            return all(self._heard[other] for other in others)

        recorder.wait(all_have_come, text, current_line()[1], need)
        self._heard.subtract(others)


meetings = Meetings()


def key_of(comm: Any) -> str:
    """A traced communicator's name, which no communicator of an earlier run has."""
    return f"{comm.inner.Get_name()} {comm.label}"
