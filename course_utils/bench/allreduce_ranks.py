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


def with_and_without_mallopt(comm: "MPI.Intracomm", size: int, runs: int) -> dict[str, list[float]]:
    """Two pairs of ranks by turns: MPI's all-reduce and ours. The second pair keeps freed memory; results on its ranks.

    Plain communicators, as the traced one makes MPI's own operation wait in another way.
    """
    number = comm.rank // 2
    pair = comm.Split(number).inner
    if number == 1:
        for option, value in MALLOPT:
            ctypes.CDLL(None).mallopt(option, value)
    vector = np.zeros(size // 4, np.float32)
    seconds: dict[str, list[float]] = {"MPI": [], "ring": []}
    for turn in range(2 * (runs + 1)):
        comm.Barrier()  # the other pair sleeps here, with looks now and then
        if turn % 2 == number:
            taken = {
                "MPI": timed_pair(pair, mpi_allreduce, vector),
                "ring": timed_pair(pair, async_ring_allreduce, vector),
            }
            if turn > 1:
                for name, one in taken.items():
                    seconds[name].append(one)
    return seconds


def timed_pair(pair: "MPI.Intracomm", allreduce: Callable, vector: np.ndarray) -> float:
    """Seconds until both have the sum."""
    pair.Barrier()
    start = time.perf_counter()
    allreduce(pair, vector)
    return max(pair.allgather(time.perf_counter() - start))


def mpi_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """MPI's own, in place."""
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)


def ping_pongs(comm: "MPI.Intracomm", sizes: Sequence[int]) -> list[float]:
    """Seconds of a message of each size, one way, without the trace's own; on rank 0."""
    return [ping_pong(comm.inner, size) for size in sizes]


def rested_messages(comm: "MPI.Intracomm", sizes: Sequence[int], runs: int) -> tuple[list[float], float]:
    """Half of the median round trip for each size, over links that have rested; what each further message adds."""
    margin = start_margin(comm)
    medians = [statistics.median(there_and_back(comm, size, 1, margin) for _ in range(runs + 2)) / 2 for size in sizes]
    several = statistics.median(there_and_back(comm, 1, 8, margin) for _ in range(runs + 2)) / 2
    return medians, max(0.0, several - medians[0]) / 7


def there_and_back(comm: "MPI.Intracomm", size: int, messages: int, margin: float) -> float:
    """Seconds from the start until rank 0 has got as many messages back as it has sent."""
    buffer = np.zeros(size, np.uint8)
    start = start_together(comm, margin)
    for sender in (0, 1):
        for _ in range(messages):
            if comm.rank == sender:
                comm.Send(buffer, dest=1 - sender)
            else:
                comm.Recv(buffer, source=sender)
    return comm.bcast(time.perf_counter() - start)


def gamma_here(comm: "MPI.Intracomm") -> float:
    """Seconds per byte to add, while all ranks do."""
    comm.Barrier()
    return measure_gamma()
