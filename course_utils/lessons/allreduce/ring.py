"""All-reduce round a ring: P − 1 rounds of adding, P − 1 of passing on, one block of the vector in each."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, check_operands, combine

if TYPE_CHECKING:
    from mpi4py import MPI


def ring_reduce_scatter(comm: "MPI.Intracomm", vector: np.ndarray, op: "MPI.Op | None" = None) -> None:
    """Combine the vectors of all ranks so that rank r ends with the finished block r; its other blocks are partial.

    The vector is cut into P blocks. In each of P − 1 rounds every rank sends one block to the right and combines the
    block that comes from the left into its own: block b starts on rank b + 1, goes once round, and arrives complete
    on rank b. Each rank sends (P − 1)/P of the vector, up to the rounding of blocks.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks; overwritten.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
    """
    check_operands(vector, op)
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    incoming = np.empty_like(blocks[0])  # the first block is the longest
    for step in range(world_size - 1):
        # What arrives in a round, and is added to, leaves in the next.
        # The last to arrive is this rank's own.
        outgoing = blocks[(rank - step - 1) % world_size]
        arriving = blocks[(rank - step - 2) % world_size]
        buffer = incoming[: len(arriving)]
        comm.Sendrecv(outgoing, dest=right, recvbuf=buffer, source=left)
        combine(buffer, arriving, op)


def ring_all_gather(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Give every rank the finished blocks of all: block r of the vector is read on rank r, the others overwritten.

    In each of P − 1 rounds every rank passes the block on that came last, and at first its own: each rank sends
    (P − 1)/P of the vector, up to the rounding of blocks.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks.

    Raises:
        ValueError: the vector does not fit.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
    """
    check_operands(vector, None)
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    for step in range(world_size - 1):
        # What arrives in a round leaves in the next.
        # It goes straight to its place: nothing is added.
        outgoing = blocks[(rank - step) % world_size]
        arriving = blocks[(rank - step - 1) % world_size]
        comm.Sendrecv(outgoing, dest=right, recvbuf=arriving, source=left)


def ring_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    op: "MPI.Op | None" = None,
) -> None:
    """Combine the vectors of all ranks, in place: blocks go round, twice.

    A reduce-scatter, then an all-gather: 2 (P − 1) rounds. Each rank sends 2 (P − 1)/P of
    the vector, the least that is possible, up to the rounding of blocks, and only ever to
    its right neighbour.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks;
            overwritten with the result.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
    of workstations".
    """
    check_operands(vector, op)
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    incoming = np.empty_like(blocks[0])
    for step in range(2 * (world_size - 1)):
        # What arrives in a round leaves in the next:
        # its number is one lower, as the rank's is one higher.
        outgoing = blocks[(rank - step - 1) % world_size]
        arriving = blocks[(rank - step - 2) % world_size]
        adding = step < world_size - 1  # afterwards finished blocks replace partial ones
        buffer = incoming[: len(arriving)] if adding else arriving
        comm.Sendrecv(outgoing, dest=right, recvbuf=buffer, source=left)
        if adding:
            combine(buffer, arriving, op)
