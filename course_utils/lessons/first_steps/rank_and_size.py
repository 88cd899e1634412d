"""The first functions that run on every rank.

The same function is called once on each rank. Its first argument is `comm`, the communicator, which knows the ranks
that take part and sends messages between them. Ranks share nothing, so what one of them needs to know has to be sent.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def rank_squared(comm: "MPI.Intracomm") -> int:
    """Return the square of this rank's number: 0 on rank 0, 1 on rank 1, 4 on rank 2, 9 on rank 3.

    No message is needed, because every rank knows its own number, `comm.rank`.
    """
    return comm.rank**2


def who_is_there(comm: "MPI.Intracomm", name: str) -> list[str]:
    """Return the list of the names of all ranks, in the order of the ranks, on every rank.

    Args:
        name: the name of this rank. Two ranks may have the same name.

    Source: MPI 4.1, §6.7 (allgather).
    """
    return comm.allgather(name)
