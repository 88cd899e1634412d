"""All-reduce round a ring: P − 1 rounds of adding, P − 1 of passing on, one block of the vector in each."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of

if TYPE_CHECKING:
    from mpi4py import MPI


def ring_reduce_scatter(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks so that rank r ends up with the complete block r; its other blocks are partial.

    The vector is cut into P blocks. In each of P − 1 rounds every rank sends one block to the right and adds the block
    that arrives from the left to its own. Block b starts on rank b + 1, travels once around the ring, and is complete
    when it arrives on rank b. Each rank sends (P − 1)/P of the vector, up to the rounding of blocks.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; overwritten.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    incoming = np.empty_like(blocks[0])  # the first block is the longest
    for step in range(world_size - 1):
        # What arrives in one round leaves in the next. The last block to arrive is this rank's own.
        outgoing = blocks[(rank - step - 1) % world_size]
        arriving = blocks[(rank - step - 2) % world_size]
        buffer = incoming[: len(arriving)]
        comm.Sendrecv(outgoing, dest=right, recvbuf=buffer, source=left)
        arriving += buffer


def ring_all_gather(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Give every rank the complete blocks of all ranks: block r is read on rank r and overwritten on the others.

    Each rank first sends its own block to the right, and in every later round the block that has just arrived. In P − 1
    rounds it sends (P − 1)/P of the vector, up to the rounding of blocks.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    for step in range(world_size - 1):
        # What arrives in one round leaves in the next. It is received into the vector, as nothing is added.
        outgoing = blocks[(rank - step) % world_size]
        arriving = blocks[(rank - step - 1) % world_size]
        comm.Sendrecv(outgoing, dest=right, recvbuf=arriving, source=left)


def ring_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place, by passing blocks around a ring twice.

    Cut the vector into P blocks. In the first P − 1 rounds each rank sends one block to its
    right neighbour and adds the block that arrives from the left to its own. In the next
    P − 1 rounds the complete blocks travel on, and each takes the place of a partial one.
    Each rank sends 2 (P − 1)/P of the vector in total, up to the rounding of blocks.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the
            place of what was in it.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
    of workstations".
    """
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    incoming = np.empty_like(blocks[0])
    for step in range(2 * (world_size - 1)):
        # What arrives in one round leaves in the next.
        # So the right neighbour sends the same block one round later.
        outgoing = blocks[(rank - step - 1) % world_size]
        arriving = blocks[(rank - step - 2) % world_size]
        adding = step < world_size - 1  # in later rounds complete blocks replace partial ones
        buffer = incoming[: len(arriving)] if adding else arriving
        comm.Sendrecv(outgoing, dest=right, recvbuf=buffer, source=left)
        if adding:
            arriving += buffer
