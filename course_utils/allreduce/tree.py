"""All-reduce along a binomial tree: the sum gathers towards rank 0 and is handed out again."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.allreduce.blocks import check_operands, combine
from course_utils.messages import tree_broadcast

if TYPE_CHECKING:
    from mpi4py import MPI


def tree_allreduce(comm: "MPI.Intracomm", vector: np.ndarray, op: "MPI.Op | None" = None) -> None:
    """Combine the vectors of all ranks, in place: a binomial reduce to rank 0, then the tree broadcast of lesson 4.

    In round k of the reduce, ranks 2^k apart meet in pairs: the upper one sends what it has gathered to the lower
    one and is done until the broadcast. 2 ⌈log₂ P⌉ rounds, 2 (P − 1) messages of the whole vector; rank 0's link
    carries up to ⌈log₂ P⌉ vectors each way.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks; overwritten with the result.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication Operations in MPICH", §4.
    """
    check_operands(vector, op)
    rank, world_size = comm.rank, comm.size
    incoming = np.empty_like(vector)
    distance = 1
    while distance < world_size and rank % distance == 0:
        if rank % (2 * distance):
            comm.Send(vector, dest=rank - distance)
        elif rank + distance < world_size:
            comm.Recv(incoming, source=rank + distance)
            combine(incoming, vector, op)
        distance *= 2
    tree_broadcast(comm, vector)
