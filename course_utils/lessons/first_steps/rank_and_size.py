"""The first functions that run on every rank.

The same function is called once on each rank, and each call is handed `comm`, the communicator: what the ranks of this
call are, and the way to talk between them. Ranks share nothing; what one wants to know of another must be sent.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def rank_squared(comm: "MPI.Intracomm") -> int:
    """Return the square of this rank's number: 0 on rank 0, 1 on rank 1, 4 on rank 2, 9 on rank 3.

    Nothing moves between the ranks: each knows its own number, `comm.rank`.
    """
    return comm.rank**2


def who_is_there(comm: "MPI.Intracomm", name: str) -> list[str]:
    """Return, on every rank, the names of all ranks in rank order.

    Each rank puts one name in and gets all of them out: with P ranks, P names travel to P ranks.

    Args:
        name: this rank's own; two ranks may have the same.

    Source: MPI 4.1, §6.7 (allgather).
    """
    return comm.allgather(name)
