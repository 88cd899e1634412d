"""All-reduce by recursive halving and doubling: as few bytes as the ring, in as few rounds as a logarithm allows."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import block_bounds, check_operands, combine, fold_in, fold_out

if TYPE_CHECKING:
    from mpi4py import MPI


def halving_doubling_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    op: "MPI.Op | None" = None,
) -> None:
    """Combine the vectors of all ranks, in place: ever smaller halves, and back.

    A reduce-scatter by halving, then an all-gather by doubling. The vector is cut into P
    blocks. Halving: at distance P/2, P/4, …, 1 each rank gives its partner the half that
    the partner is to go on with, and combines the other half; in the end rank r has the
    sum of block r. Doubling goes the same way back and swaps finished blocks. 2 log₂ P
    rounds, 2 (P − 1)/P of the vector sent by each rank. Where P is not a power of two, the
    surplus ranks are folded in first: two rounds more, of a whole vector.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks;
            overwritten with the result.
        op: a commutative operation of MPI; None for the sum.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4 (Rabenseifner's algorithm).
    """
    check_operands(vector, op)
    active = fold_in(comm, vector, op)
    if comm.rank < active:
        bounds = block_bounds(len(vector), active)

        def part(rank: int, distance: int) -> np.ndarray:
            """The blocks of the group of `distance` ranks that this rank belongs to."""
            first = rank // distance * distance
            return vector[bounds[first] : bounds[first + distance]]

        distances = [active >> k for k in range(1, active.bit_length())]  # P/2, P/4, …, 1
        incoming = np.empty_like(vector[: bounds[(active + 1) // 2]])
        # Reduce-scatter: what a rank answers for halves in every round, and so does what it sends.
        for distance in distances:
            partner = comm.rank ^ distance
            mine, theirs = part(comm.rank, distance), part(partner, distance)
            comm.Sendrecv(theirs, dest=partner, recvbuf=incoming[: len(mine)], source=partner)
            combine(incoming[: len(mine)], mine, op)
        # All-gather: the same partners, last one first, each giving all that it has finished.
        for distance in reversed(distances):
            partner = comm.rank ^ distance
            mine, theirs = part(comm.rank, distance), part(partner, distance)
            comm.Sendrecv(mine, dest=partner, recvbuf=theirs, source=partner)
    fold_out(comm, vector, active)
