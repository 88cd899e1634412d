"""All-reduce along a binomial tree: partial sums move towards rank 0, and the result moves back."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI


def tree_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place: along a tree to rank 0, and back again.

    In round k = 0, 1, 2, … ranks that are 2^k apart meet in pairs. The higher rank sends
    its sum to the lower one, which adds it, and takes no part in the following rounds.
    When rank 0 has the complete sum, the same pairs meet in the opposite order, and each
    lower rank sends the result to the higher one. This takes 2 ⌈log₂ P⌉ rounds and
    2 (P − 1) messages of the whole vector.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the
            place of what was in it.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4.
    """
    rank, world_size = comm.rank, comm.size
    incoming = np.empty_like(vector)
    # How far apart the two ranks of a pair are: 1, 2, 4, … below P.
    distances = [1 << k for k in range((world_size - 1).bit_length())]
    # Up to rank 0. A rank that has sent its sum takes no part in later rounds.
    for distance in distances:
        if rank % (2 * distance) == distance:
            comm.Send(vector, dest=rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            comm.Recv(incoming, source=rank + distance)
            vector += incoming
    # And back, beginning with the last round: ranks that received now send.
    for distance in reversed(distances):
        if rank % (2 * distance) == distance:
            comm.Recv(vector, source=rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            comm.Send(vector, dest=rank + distance)
