"""All-reduce by recursive halving and doubling: as few bytes as the ring, in as few rounds as a logarithm allows."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import block_bounds, fold_in, fold_out

if TYPE_CHECKING:
    from mpi4py import MPI


def halving_doubling_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place: share out the adding by halves, then collect.

    Let P be a power of two, and cut the vector into P blocks. In the first phase, partners
    are P/2, P/4, …, 1 apart. They divide the blocks that they are both responsible for: each
    keeps one half, sends the other half to its partner, and adds what it receives. In the
    end rank r has the complete block r. In the second phase the partners meet in the
    opposite order and give each other all complete blocks that they have. This takes
    2 log₂ P rounds, and each rank sends 2 (P − 1)/P of the vector. For other P, `fold_in`
    and `fold_out` take care of the surplus ranks.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the
            place of what was in it.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4 (Rabenseifner's algorithm).
    """
    active = fold_in(comm, vector)
    if comm.rank < active:
        bounds = block_bounds(len(vector), active)

        def part(rank: int, distance: int) -> np.ndarray:
            """The blocks of the group of `distance` ranks to which this rank belongs."""
            first = rank // distance * distance
            return vector[bounds[first] : bounds[first + distance]]

        distances = [active >> k for k in range(1, active.bit_length())]  # P/2, P/4, …, 1
        incoming = np.empty_like(vector[: bounds[(active + 1) // 2]])
        # Reduce-scatter: each rank keeps its own half and sends the half that its partner keeps.
        for distance in distances:
            partner = comm.rank ^ distance
            mine, theirs = part(comm.rank, distance), part(partner, distance)
            comm.Sendrecv(theirs, dest=partner, recvbuf=incoming[: len(mine)], source=partner)
            mine += incoming[: len(mine)]
        # All-gather: the last partner comes first, and each gives all its complete blocks.
        for distance in reversed(distances):
            partner = comm.rank ^ distance
            mine, theirs = part(comm.rank, distance), part(partner, distance)
            comm.Sendrecv(mine, dest=partner, recvbuf=theirs, source=partner)
    fold_out(comm, vector, active)
