"""All-reduce by recursive doubling: pairs swap whole vectors, at twice the distance in every round."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import check_operands, combine, fold_in, fold_out

if TYPE_CHECKING:
    from mpi4py import MPI


def recursive_doubling_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    op: "MPI.Op | None" = None,
) -> None:
    """Combine the vectors of all ranks, in place: pairs swap them, ever further apart.

    In round k a rank swaps its whole vector with the one 2^k away. After it every rank
    has the sum over its group of 2^(k + 1). log₂ P rounds, each rank sends the whole
    vector in each. Where P is not a power of two, the surplus ranks are folded in first: two
    rounds more, of a whole vector.

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
    # Pairs need a power of two:
    # surplus ranks add their vector to another's first, and get the result last.
    active = fold_in(comm, vector, op)
    if comm.rank < active:
        incoming = np.empty_like(vector)
        distance = 1
        while distance < active:
            partner = comm.rank ^ distance  # the rank whose number differs in one bit
            comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
            # Both partners now hold the sum over both groups.
            combine(incoming, vector, op)
            distance *= 2
    fold_out(comm, vector, active)
