"""What the bench of all-reduces does on the ranks: algorithms by turns, copies, messages, MPI's own."""

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.allreduce import async_ring_allreduce
from course_utils.allreduce.fit import measure_gamma
from course_utils.allreduce.sweep import one_run, start_margin, start_together
from course_utils.messages import ping_pong

if TYPE_CHECKING:
    from mpi4py import MPI

MALLOPT = ((-3, 1 << 30), (-1, (1 << 31) - 1))  # malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
MEMCPY = "memcpy"
SHORT = 32_000  # bytes; a link that has rested lets so many through at once
FURTHER = 3

Seconds = dict[tuple[str, int], list[float]]
"""By algorithm and bytes, the seconds of every run, taken by turns."""


def by_turns(comm: "MPI.Intracomm", algorithms: dict[str, Callable], sizes: Sequence[int], runs: int) -> Seconds:
    """Seconds from the common start to the last rank's end, and of a copy; a first round is not counted."""
    margin = start_margin(comm)
    seconds: Seconds = {}
    for size in sizes:
        vector, copy = np.zeros(size // 4, np.float32), np.zeros(size // 4, np.float32)
        for number in range(runs + 1):
            taken = {name: one_run(comm, name, function, vector, margin) for name, function in algorithms.items()}
            taken[MEMCPY] = copy_seconds(comm, vector, copy, margin)
            if number:
                for name, one in taken.items():
                    seconds.setdefault((name, size), []).append(one)
    return seconds


def copy_seconds(comm: "MPI.Intracomm", vector: np.ndarray, copy: np.ndarray, margin: float) -> float:
    """Seconds until all ranks, at the same time, have copied as many bytes as the ring sends, 2 (P − 1)/P vectors."""
    rest = len(vector) * (comm.size - 2) // comm.size
    start = start_together(comm, margin)
    copy[:] = vector
    copy[:rest] = vector[:rest]
    return max(comm.allgather(time.perf_counter() - start))


def ring_and_mpi(comm: "MPI.Intracomm", size: int, runs: int, pair: int) -> dict[str, list[float]] | None:
    """Seconds of our fast ring and of MPI's own all-reduce, by turns; a first round is not counted.

    On a plain communicator, as the traced one makes MPI's own operation wait in another way.

    Args:
        pair: which ranks do it, 2 · pair and the next; the others return. Pair 1 has raised thresholds of malloc.
    """
    inner = comm.inner.Split(comm.rank // 2)
    if comm.rank // 2 != pair:
        return None
    for option, value in MALLOPT if pair == 1 else ():
        ctypes.CDLL(None).mallopt(option, value)
    vector = np.zeros(size // 4, np.float32)
    seconds: dict[str, list[float]] = {"ring": [], "MPI": []}
    for number in range(runs + 1):
        for name, allreduce in {"ring": async_ring_allreduce, "MPI": mpi_allreduce}.items():
            inner.Barrier()
            start = time.perf_counter()
            allreduce(inner, vector)
            taken = max(inner.allgather(time.perf_counter() - start))
            if number:
                seconds[name].append(taken)
    return seconds


def mpi_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """MPI's own, in place."""
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)


def ping_pongs(comm: "MPI.Intracomm", sizes: Sequence[int]) -> list[float]:
    """Seconds of a message of each size, one way, without the trace's own; on rank 0."""
    return [ping_pong(comm.inner, size) for size in sizes]


def rested_messages(comm: "MPI.Intracomm", sizes: Sequence[int], runs: int) -> tuple[list[float], float]:
    """Median seconds of a message of each size over links that have rested; what each further message adds.

    All ranks send to the right and receive from the left, then the other way: with as many at work as in an all-reduce.
    Short messages go to and fro more often, so that the common start counts for little.
    """
    margin = start_margin(comm)
    medians = []
    for size in sizes:
        turns = 2 * max(1, min(3, SHORT // size))
        medians.append(statistics.median(to_and_fro(comm, size, turns, margin) for _ in range(runs + 2)) / turns)
    several = statistics.median(to_and_fro(comm, 1, 6, margin, FURTHER) for _ in range(runs + 2)) / 6
    return medians, max(0.0, several - medians[0]) / FURTHER


def to_and_fro(comm: "MPI.Intracomm", size: int, turns: int, margin: float, further: int = 0) -> float:
    """Seconds until every rank has swapped so many messages with its neighbours; and further ones of a byte at once."""
    outgoing, incoming, byte = np.zeros(size, np.uint8), np.zeros(size, np.uint8), np.zeros(1, np.uint8)
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    start = start_together(comm, margin)
    for _ in range(turns):
        for _ in range(further):
            comm.Send(byte, dest=right)
        comm.Sendrecv(outgoing, dest=right, recvbuf=incoming, source=left)
        for _ in range(further):
            comm.Recv(byte, source=left)
        left, right = right, left
    return max(comm.allgather(time.perf_counter() - start))


def gamma_here(comm: "MPI.Intracomm") -> float:
    """Seconds per byte to add, while all ranks do."""
    comm.Barrier()
    return measure_gamma()
