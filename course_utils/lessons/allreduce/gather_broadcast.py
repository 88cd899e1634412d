"""The naive all-reduce: one rank gathers everything, adds, and sends the sum to everybody."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import check_operands, combine
from course_utils.lessons.messages.broadcast_and_scatter import flat_broadcast

if TYPE_CHECKING:
    from mpi4py import MPI


def gather_broadcast_allreduce(comm: "MPI.Intracomm", vector: np.ndarray, op: "MPI.Op | None" = None) -> None:
    """Combine the vectors of all ranks, in place: all send theirs to rank 0, which combines and sends to all.

    2 (P − 1) rounds, as rank 0 receives and sends one message at a time. Rank 0's link carries P − 1 whole vectors
    each way, every other rank's link one; 2 (P − 1) messages of the whole vector in all.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks; overwritten with the result.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4 (the naive way).
    """
    check_operands(vector, op)
    if comm.rank == 0:
        incoming = np.empty_like(vector)
        for source in range(1, comm.size):
            comm.Recv(incoming, source=source)
            combine(incoming, vector, op)
    else:
        comm.Send(vector, dest=0)
    flat_broadcast(comm, vector)
