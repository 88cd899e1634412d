"""All-reduce by recursive doubling: pairs swap whole vectors, at twice the distance in every round."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import fold_in, fold_out

if TYPE_CHECKING:
    from mpi4py import MPI


def recursive_doubling_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place: pairs swap their sums, at twice the distance
    in every round.

    In round k = 0, 1, 2, … each rank swaps its whole sum with the rank that is 2^k away,
    and adds what it receives. After that round it has the sum of 2^(k + 1) vectors. This
    takes log₂ P rounds. If P is not a power of two, `fold_in` first adds the vectors of the
    surplus ranks to those of others, and `fold_out` gives them the result at the end, which
    takes two more rounds.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the
            place of what was in it.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4.
    """
    # Pairs need a power of two, so surplus ranks hand their vectors over first and get the
    # result last.
    active = fold_in(comm, vector)
    if comm.rank < active:
        incoming = np.empty_like(vector)
        distance = 1
        while distance < active:
            partner = comm.rank ^ distance  # the rank whose number differs in one bit
            comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
            vector += incoming  # now both partners have the sum of both
            distance *= 2
    fold_out(comm, vector, active)
