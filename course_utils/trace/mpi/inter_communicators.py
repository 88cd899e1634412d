"""The collectives of two groups that an inter-communicator binds together: both groups have to come to each.

What a rank gathers comes from the other group. Where there is a root, it gives MPI.ROOT, the other ranks of its group
give PROC_NULL, and the ranks of the other group give its number (MPI 4.1, section 6.2.3).
"""

from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread
from course_utils.trace.call_texts import collective_text
from course_utils.trace.events import UNKNOWN_ROOT, Agreement
from course_utils.trace.mpi.collectives import CollectiveCall, Collectives
from course_utils.trace.mpi.pickles import pickle_object
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.recorder import current_line, recorder
from course_utils.trace.wait_graph import Collective

_ANY_CODE = 0
"""Of a rank that does not know which rank is the root."""


class _Meeting(NamedTuple):
    """What is waited for as for a request."""

    Test: Callable[[], bool]


class InterCollectives(Collectives):
    """Mixed into `TracedIntercomm`.

    A blocking call is MPI's own, made when all ranks have come, because MPICH 5.0 counts the nonblocking calls of ranks
    that give PROC_NULL wrongly.

    Attributes:
        own_ranks: the ranks of this rank's group, numbered as in the run; `world_ranks` are those of the other group.
    """

    inner: MPI.Intercomm
    own_ranks: list[int]
    world_ranks: list[int]

    def wait_for_all_ranks(self, name: str) -> Collective:
        """Wait until all ranks of both groups have come, to the same."""
        agreement = Agreement(name)
        need = recorder.ledger.add_collective(self.label, self.members, agreement)
        _, source_line = current_line()
        self._meet(agreement, lambda done: recorder.wait(done, name, source_line, need))
        return need

    def _meet(self, agreement: Agreement, wait: Callable[[Callable[[], bool]], None]) -> None:
        own_code = _ANY_CODE if agreement.root == UNKNOWN_ROOT else crc32(f"{agreement.name} {agreement.root}".encode())
        codes = array("L", bytes(8 * self.inner.Get_remote_size()))
        exchange = self.inner.Iallgather(array("L", [own_code]), codes)

        def all_have_come_to_the_same() -> bool:
            found = {own_code, *codes}
            return exchange.Test() and len(found - {_ANY_CODE}) == 1

        wait(all_have_come_to_the_same)
        wait(self.inner.Ibarrier().Test)  # only the other group has seen whether this one has come to the same

    def call_text(self, name: str, root: int | None) -> str:
        """Return a collective in words, with the root as this rank has to give it; `root` is numbered as in the run."""
        if root == UNKNOWN_ROOT:
            return f"{name}(root=MPI.PROC_NULL)"
        if root == self.own_ranks[self.rank]:
            return f"{name}(root=MPI.ROOT)"
        return collective_text(name, self.world_ranks.index(root) if root in self.world_ranks else root)

    def _root_bytes(self, root: int, buf: Any) -> int:
        return super()._root_bytes(self.rank if root == MPI.ROOT else -1, buf)

    def _root_bytes_of_all(self, root: int, sendbuf: Any) -> int:
        return super()._root_bytes_of_all(self.rank if root == MPI.ROOT else -1, sendbuf)

    def _agreement(self, name: str, root: int | None = None, op: MPI.Op | None = None) -> Agreement:
        """What must be the same on all ranks, with the root as the run numbers it; the amounts may differ."""
        if root == MPI.PROC_NULL:
            root = UNKNOWN_ROOT
        elif root == MPI.ROOT:
            root = self.own_ranks[self.rank]
        elif root is not None:
            root = self.world_ranks[root] if 0 <= root < len(self.world_ranks) else root
        return CollectiveCall(MPI.Request, 0, root, op).agreement(name)._replace(between_groups=True)

    def _call(self, name: str, agreement: Agreement, size: int, *arguments: Any) -> Any:
        """Make a blocking call when all ranks have come."""

        def steps(wait: Callable[[Any], None]) -> Any:
            self._meet(agreement, lambda done: wait(_Meeting(done)))
            return call_in_thread(partial(getattr(self.inner, name), *arguments), name)

        return self._run(name, steps, size, agreement)

    def _run_described(self, name: str, call: CollectiveCall) -> None:
        arguments = getattr(call.start, "args", ())
        self._call(name, self._agreement(name, call.root, call.op), call.size, *arguments)

    def _start_described(self, blocking: str, name: str, call: CollectiveCall) -> TracedRequest:
        agreement = self._agreement(blocking, call.root, call.op)
        described = replace(call, root=agreement.root, amount=(None, ""), layouts=())
        return super()._start_described(blocking, name, described)

    # --- Python objects: MPI's own, too -----------------------------------------------------------------------------

    def barrier(self):
        self._call("barrier", Agreement("Barrier"), 0)

    def bcast(self, obj=None, root=0):
        size = len(pickle_object(obj)) if root == MPI.ROOT else 0
        return self._call("bcast", self._agreement("bcast", root), size, obj, root)

    def scatter(self, sendobj=None, root=0):
        size = len(pickle_object(sendobj)) if root == MPI.ROOT else 0
        return self._call("scatter", self._agreement("scatter", root), size, sendobj, root)

    def gather(self, sendobj, root=0):
        return self._call("gather", self._agreement("gather", root), len(pickle_object(sendobj)), sendobj, root)

    def allgather(self, sendobj):
        return self._call("allgather", self._agreement("allgather"), len(pickle_object(sendobj)), sendobj)

    def alltoall(self, sendobj):
        return self._call("alltoall", self._agreement("alltoall"), len(pickle_object(sendobj)), sendobj)

    def reduce(self, sendobj, op=MPI.SUM, root=0):
        return self._call("reduce", self._agreement("reduce", root, op), len(pickle_object(sendobj)), sendobj, op, root)

    def allreduce(self, sendobj, op=MPI.SUM):
        return self._call("allreduce", self._agreement("allreduce", op=op), len(pickle_object(sendobj)), sendobj, op)

    def scan(self, sendobj, op=MPI.SUM):
        raise AttributeError("scan and exscan have no meaning between two groups, so an inter-communicator has neither")

    exscan = scan
