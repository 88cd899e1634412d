"""What the bench of all-reduces does on the ranks: algorithms by turns, copies, messages, MPI's own."""

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from course_utils import system
from course_utils.lessons.allreduce.allreduce_times import one_run, start_margin, start_together
from course_utils.lessons.allreduce.async_ring import async_ring_allreduce
from course_utils.lessons.messages.ping_pong import ping_pong
from course_utils.measuring import by_turns

if TYPE_CHECKING:
    from mpi4py import MPI

MALLOPT = ((-3, 1 << 30), (-1, (1 << 31) - 1))  # malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
MEMCPY, MESSAGE, FURTHER_MESSAGE = "memcpy", "message", "further message"
SHORT = 32_000  # bytes; a link that has rested lets this many through at once
FURTHER = 3

Seconds = dict[tuple[str, int], list[float]]
"""By algorithm and bytes, the seconds of every run, taken by turns."""


def sweep(
    comm: "MPI.Intracomm",
    algorithms: dict[str, Callable],
    sizes: Sequence[int],
    runs: int,
    messages: Sequence[int] = (),
    warm_ups: int = 1,
) -> Seconds:
    """Seconds from the common start to the last rank's end of every algorithm, of a copy, and of messages alone.

    All of them once, then all again: what the machine does meanwhile meets all. First rounds are not counted.
    """
    margin = start_margin(comm)
    measures: dict[tuple[str, int], Callable[[], float]] = {
        (MESSAGE, size): partial(message_at_work, comm, size, margin) for size in messages
    }
    if messages:
        measures[FURTHER_MESSAGE, messages[0]] = partial(further_message_at_work, comm, messages[0], margin)
    for size in sizes if algorithms else ():
        for name, algorithm in algorithms.items():
            measures[name, size] = partial(one_run, comm, name, algorithm, size, margin)
        measures[MEMCPY, size] = partial(copy_seconds, comm, size, margin)
    return by_turns(measures, runs, warm_ups)


def copy_seconds(comm: "MPI.Intracomm", size: int, margin: float) -> float:
    """Seconds until all ranks, at the same time, have copied as many bytes as the ring sends, 2 (P − 1)/P vectors."""
    vector, copy = np.ones(size // 4, np.float32), np.ones(size // 4, np.float32)
    rest = len(vector) * (comm.size - 2) // comm.size
    start = start_together(comm, margin)
    copy[:] = vector
    copy[:rest] = vector[:rest]
    return max(comm.allgather(time.perf_counter() - start))


def ring_and_mpi(comm: "MPI.Intracomm", size: int, runs: int, pair: int) -> dict[str, list[float]] | None:
    """Seconds of our fast ring and of MPI's own all-reduce, by turns; a first round is not counted.

    Each rank keeps to a core of its own, and each run comes after one of the same that is not counted: neither pays for
    what the other has left in the caches.

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
    cores = system.cores()
    if len(cores) > 1:
        system.bind_to([cores[inner.rank]])

    def second_of_two(allreduce: Callable) -> float:
        allreduce(inner, vector)
        inner.Barrier()
        start = time.perf_counter()
        allreduce(inner, vector)
        return max(inner.allgather(time.perf_counter() - start))

    measures = {"ring": partial(second_of_two, async_ring_allreduce), "MPI": partial(second_of_two, mpi_allreduce)}
    seconds = by_turns(measures, runs, warm_ups=1)
    system.bind_to(cores)
    return seconds


def mpi_allreduce(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """MPI's own, in place."""
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)


def ping_pongs(comm: "MPI.Intracomm", sizes: Sequence[int]) -> list[float]:
    """Seconds of a message of each size, one way, without the trace's own; on rank 0."""
    return [ping_pong(comm.inner, size) for size in sizes]


def message_at_work(comm: "MPI.Intracomm", size: int, margin: float) -> float:
    """Seconds of a message over links that have rested.

    All ranks send to the right and receive from the left, then the other way: with as many at work as in an all-reduce.
    Short messages go to and fro more often, so that the common start counts for little.
    """
    return to_and_fro(comm, size, turns_of(size), margin) / turns_of(size)


def further_message_at_work(comm: "MPI.Intracomm", size: int, margin: float) -> float:
    """Seconds that each further message at once adds to one of this size, measured one right after the other."""
    single = message_at_work(comm, size, margin)
    several = to_and_fro(comm, size, 6, margin, FURTHER) / 6
    return max(0.0, several - single) / FURTHER


def turns_of(size: int) -> int:
    """How often a message of this many bytes goes to and fro."""
    return 2 * max(1, min(3, SHORT // size))


def to_and_fro(comm: "MPI.Intracomm", size: int, turns: int, margin: float, further: int = 0) -> float:
    """Seconds until every rank has swapped `turns` messages with its neighbours; and further ones of a byte at once."""
    outgoing, incoming = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    byte, arrived = np.zeros(1, np.uint8), np.zeros(further, np.uint8)
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    start = start_together(comm, margin)
    for _ in range(turns):
        # A Send to the right on all ranks at once would end only because MPI buffers a byte.
        under_way = [comm.Isend(byte, dest=right) for _ in range(further)]
        under_way += [comm.Irecv(arrived[number:][:1], source=left) for number in range(further)]
        comm.Sendrecv(outgoing, dest=right, recvbuf=incoming, source=left)
        for request in under_way:
            request.Wait()
        left, right = right, left
    return max(comm.allgather(time.perf_counter() - start))


def gamma_here(comm: "MPI.Intracomm") -> float:
    """Seconds per byte to add, while all ranks do."""
    comm.Barrier()
    return measure_gamma()


def measure_gamma(nbytes: int = 1 << 22, repeats: int = 7) -> float:
    """Seconds per byte to add one float32 vector of this many bytes to another, here and now: the median of several."""
    ours, theirs = np.ones(nbytes // 4, np.float32), np.ones(nbytes // 4, np.float32)
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        np.add(ours, theirs, out=ours)
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken)) / nbytes
