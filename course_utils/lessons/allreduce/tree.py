"""All-reduce along a binomial tree: the sum gathers towards rank 0 and is handed out again."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import check_operands, combine

if TYPE_CHECKING:
    from mpi4py import MPI


def tree_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    op: "MPI.Op | None" = None,
) -> None:
    """Combine the vectors of all ranks, in place: along a tree to rank 0, and back.

    The tree is binomial: in round k, ranks 2^k apart meet in pairs. The upper one sends
    what it has gathered to the lower one, and waits until the sum comes back the same
    way. 2 ⌈log₂ P⌉ rounds, 2 (P − 1) messages of the whole vector; rank 0's link carries
    up to ⌈log₂ P⌉ vectors each way.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks;
            overwritten with the result.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4.
    """
    check_operands(vector, op)
    rank, world_size = comm.rank, comm.size
    incoming = np.empty_like(vector)
    # 1, 2, 4, … below P: how far apart two ranks are that meet.
    distances = [1 << k for k in range((world_size - 1).bit_length())]
    # Up to rank 0. A rank that has sent its sum has no part in later rounds.
    for distance in distances:
        if rank % (2 * distance) == distance:
            comm.Send(vector, dest=rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            comm.Recv(incoming, source=rank + distance)
            combine(incoming, vector, op)
    # Back the same way, last round first: who received now sends.
    for distance in reversed(distances):
        if rank % (2 * distance) == distance:
            comm.Recv(vector, source=rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            comm.Send(vector, dest=rank + distance)
