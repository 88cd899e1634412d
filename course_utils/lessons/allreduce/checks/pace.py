"""How fast an all-reduce is, against a ring of blocking messages in the same minute. Runs on two ranks."""

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI

TRIES, PAIRS = 3, 3


def against_a_plain_ring(function: Callable, comm: "MPI.Intracomm", length: int, enough: float) -> float:
    """Return how many times as long `function` takes as a ring of blocking messages.

    Where it is in doubt, both are measured three times and the least counts.

    Args:
        length: of the float32 vectors.
        enough: the result is in doubt between this and three times this.
    """
    vector, ratio = np.ones(length, np.float32), np.inf
    for _ in range(TRIES):
        pairs = [[_seconds(each, comm, vector) for each in (function, _ring)] for _ in range(PAIRS)]
        own, plain = _sum_of_both(comm, [statistics.median(column) for column in zip(*pairs, strict=True)])
        ratio = min(ratio, own / plain)
        if not enough < ratio < 3 * enough:
            break
    return float(ratio)


def _seconds(function: Callable, comm: "MPI.Intracomm", vector: np.ndarray) -> float:
    """On the ranks' own clock: that of virtual ranks does not depend on the computer."""
    from mpi4py import MPI

    vector[:] = 1
    _sum_of_both(comm, [0.0])  # so that both begin together; a barrier would look like the learner's own
    start = MPI.Wtime()
    function(comm, vector)
    return MPI.Wtime() - start


def _sum_of_both(comm: "MPI.Intracomm", numbers: list[float]) -> np.ndarray:
    mine, theirs = np.array(numbers), np.empty(len(numbers))
    comm.Sendrecv(mine, dest=1 - comm.rank, recvbuf=theirs, source=1 - comm.rank)
    return mine + theirs


def _ring(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    rank, size = comm.rank, comm.size
    blocks = np.array_split(vector, size)
    for step in range(2 * (size - 1)):
        outgoing, arriving = blocks[(rank - step) % size], blocks[(rank - step - 1) % size]
        buffer = np.empty_like(arriving)
        comm.Sendrecv(outgoing, dest=(rank + 1) % size, recvbuf=buffer, source=(rank - 1) % size)
        np.copyto(arriving, arriving + buffer if step < size - 1 else buffer)
