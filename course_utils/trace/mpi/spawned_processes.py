"""Processes that ranks have started: they are no ranks of the run, so what they do cannot be known.

Messages to and from them are waited for so that the wait can be left. The ledger does not hold them.

`Spawn` returns when every rank has its connection to them. A process that ends before that, as MPICH lets it if it
disconnects at once, makes `Spawn` fail on the ranks that come too late.
"""

from functools import partial
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread
from course_utils.trace.mpi.requests import OnCompletion
from course_utils.trace.mpi.traced_messages import PointToPoint
from course_utils.trace.mpi.unrecorded_calls import mark_unrecorded_calls
from course_utils.trace.recorder import recorder


def check_arguments(call: str, *arguments: Any) -> None:
    """Reject what MPICH cannot hand over to a process: it waits for ever.

    Raises:
        ValueError: a command or an argument has a line break.
    """
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            check_arguments(call, *argument)
        elif isinstance(argument, str) and "\n" in argument:
            raise ValueError(
                f"{call}: MPICH cannot pass an argument that has a line break. "
                "Write the program to a file, and pass the name of the file."
            )


class _Outsiders(PointToPoint):
    """Messages to and from processes that are no ranks of the run."""

    def _world_rank(self, rank: int) -> None:
        return None

    def receive_need(self, source: int, tag: int) -> Any:
        return None

    def _on_receipt(self, *args: Any, **kwargs: Any) -> OnCompletion:
        return lambda end, status: None

    def Free(self: Any):
        recorder.remove_resource(self)
        MPI.Comm.Free(self)

    def Disconnect(self: Any):
        recorder.remove_resource(self)
        call_in_thread(partial(MPI.Comm.Disconnect, self), "Disconnect")


def _with_outsiders(comm: Any, inner: MPI.Comm, size: int) -> Any:
    """A communicator, made ready to send to so many processes of which the ledger knows nothing."""
    comm.inner, comm.label, comm.posted, comm.members = inner, "spawned", [], []
    comm.world_ranks = list(range(size))
    return comm


@mark_unrecorded_calls
class SpawnedProcesses(_Outsiders, MPI.Intercomm):
    """What `Spawn` gives back."""

    def __new__(cls, inner: MPI.Intercomm) -> "SpawnedProcesses":
        return _with_outsiders(super().__new__(cls, inner), inner, inner.Get_remote_size())

    inner: MPI.Intercomm

    def Merge(self, high=False):
        comm = call_in_thread(lambda: self.inner.Merge(high), "Merge")
        return recorder.add_resource(MergedProcesses(comm), "Merge")


@mark_unrecorded_calls
class MergedProcesses(_Outsiders, MPI.Intracomm):
    """Ranks of the run and processes that they have started, in one group."""

    def __new__(cls, inner: MPI.Intracomm) -> "MergedProcesses":
        return _with_outsiders(super().__new__(cls, inner), inner, inner.Get_size())
