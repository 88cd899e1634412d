"""The naive all-reduce: one rank gathers everything, adds, and sends the sum to everybody."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.messages.broadcast_and_scatter import flat_broadcast

if TYPE_CHECKING:
    from mpi4py import MPI


def gather_broadcast_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place: all send theirs to rank 0, which adds them and sends the sum to all.

    This takes 2 (P − 1) rounds, because rank 0 receives and sends one message at a time. Its link carries P − 1 whole
    vectors in each direction, and every other rank's link carries one.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the place of what was in it.

    Source: Chan et al. 2007, "Collective communication: theory, practice, and experience", §4 (the naive way).
    """
    if comm.rank == 0:
        incoming = np.empty_like(vector)
        for source in range(1, comm.size):
            comm.Recv(incoming, source=source)
            vector += incoming
    else:
        comm.Send(vector, dest=0)
    flat_broadcast(comm, vector)
