"""Measuring all-reduces on ranks of one machine: over algorithms, sizes and numbers of ranks, each several times."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.suspicious_ring import train_digits
from course_utils.lessons.sgd.digits_network import Arrays
from course_utils.measuring import by_turns

if TYPE_CHECKING:
    from mpi4py import MPI

    from course_utils.ranks.ranks import Ranks

WARM_UPS = 3
_TURNS = 4
Seconds = dict[str, list[list[float]]]
"""For each algorithm, at each size, the seconds of all runs."""


def measure(
    ranks: "Ranks",
    algorithms: Mapping[str, Callable],
    sizes: Sequence[int],
    runs: int = 3,
    world_size: int | None = None,
) -> Seconds:
    """Time each of the algorithms on vectors of this many bytes, on the first `world_size` ranks.

    The first runs of each algorithm, of the longest vector, are not counted: TCP finds the rate of the links in them.
    """
    return ranks.run(allreduce_seconds, dict(algorithms), list(sizes), runs, ranks=world_size).results[0]


def medians(seconds: Seconds) -> dict[str, list[float]]:
    """The median time of each algorithm at each size."""
    return {name: [statistics.median(times) for times in by_size] for name, by_size in seconds.items()}


def allreduce_seconds(
    comm: "MPI.Intracomm", algorithms: Mapping[str, Callable], sizes: Sequence[int], runs: int
) -> Seconds:
    """On every rank: the seconds from the common start until the last rank had the sum.

    Raises:
        ValueError: an algorithm does not give the sum.
    """
    margin = start_margin(comm)
    for name, allreduce in algorithms.items():
        for _ in range(WARM_UPS):
            one_run(comm, name, allreduce, sizes[-1], margin)
    measures = {
        (name, size): partial(one_run, comm, name, allreduce, size, margin)
        for size in sizes
        for name, allreduce in algorithms.items()
    }
    taken = by_turns(measures, runs)
    return {name: [taken[name, size] for size in sizes] for name in algorithms}


def training_seconds(
    comm: "MPI.Intracomm",
    algorithms: Mapping[str, Callable],
    data: Arrays,
    widths: Sequence[int],
    steps: int = 4,
    runs: int = 3,
) -> Seconds:
    """On every rank: the seconds of some steps of training, over the width of the hidden layer (`train_digits`).

    Returns:
        for each algorithm, at each width, the seconds of all runs, from the common start until the last rank's end.
    """
    from mpi4py import MPI

    margin = start_margin(comm)

    def one_training(allreduce: Callable, hidden: int) -> float:
        start = start_together(comm, margin)
        train_digits(comm, data, allreduce, epochs=1, hidden=hidden, steps=steps)
        return comm.allreduce(time.perf_counter() - start, op=MPI.MAX)

    measures = {
        (name, hidden): partial(one_training, allreduce, hidden)
        for hidden in widths
        for name, allreduce in algorithms.items()
    }
    taken = by_turns(measures, runs)
    return {name: [taken[name, hidden] for hidden in widths] for name in algorithms}


def one_run(comm: "MPI.Intracomm", name: str, allreduce: Callable, size: int, margin: float) -> float:
    """Seconds from the common start of one all-reduce to its last rank's end, checked."""
    from mpi4py import MPI

    vector = np.full(size // 4, comm.rank, np.float32)
    start = start_together(comm, margin)
    allreduce(comm, vector)
    seconds = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
    if not (vector == comm.size * (comm.size - 1) / 2).all():
        raise ValueError(f"{name} does not give the sum")
    return seconds


def start_margin(comm: "MPI.Intracomm") -> float:
    """Seconds within which the word of a common start reaches all ranks."""
    from mpi4py import MPI

    comm.Barrier()
    began = time.perf_counter()
    comm.Barrier()
    return 0.002 + 2 * comm.allreduce(time.perf_counter() - began, op=MPI.MAX)


def start_together(comm: "MPI.Intracomm", margin: float) -> float:
    """Wait until a moment that rank 0 names, and return it.

    All ranks of one machine read the same clock. A barrier would let them go one message's time apart.
    """
    start = comm.bcast(time.perf_counter() + margin, root=0)
    while (left := start - time.perf_counter()) > 0:
        time.sleep(max(0.0, left - 0.0005))
    return start


def work_per_message(comm: "MPI.Intracomm", runs: int = 9) -> float:
    """Seconds by which each further message at once delays a message, because one computer emulates all nodes.

    All ranks pass a byte on to the right; then ranks 0 and 1 alone swap one. The difference of the medians of this many
    runs, divided by the number of further messages; 0 with two ranks, where there are none.
    """
    if comm.size <= 2:
        return 0.0
    margin, byte, incoming = start_margin(comm), np.zeros(1, np.uint8), np.zeros(1, np.uint8)
    taken: dict[int, list[float]] = {comm.size: [], 2: []}
    for _ in range(runs + 1):
        for ranks, seconds in taken.items():
            start = start_together(comm, margin)
            for _ in range(_TURNS if comm.rank < ranks else 0):
                left, right = (comm.rank - 1) % ranks, (comm.rank + 1) % ranks
                comm.Sendrecv(byte, dest=right, recvbuf=incoming, source=left)
            seconds.append(max(comm.allgather(time.perf_counter() - start if comm.rank < ranks else 0.0)) / _TURNS)
    all_at_once, pair = (statistics.median(seconds[1:]) for seconds in taken.values())
    return max(0.0, all_at_once - pair) / (comm.size - 2)


def message_seconds(comm: "MPI.Intracomm", sizes: Sequence[int], other: int = 1, runs: int = 5) -> list[float]:
    """Half of the median round trip between rank 0 and rank `other`, for messages of this many bytes."""
    taken: list[float] = []
    for size in reversed(sizes):
        buffer, round_trips = np.zeros(size, np.uint8), []
        for _ in range(runs + 2):
            start = time.perf_counter()
            if comm.rank == 0:
                comm.Send(buffer, dest=other)
                comm.Recv(buffer, source=other)
            elif comm.rank == other:
                comm.Recv(buffer, source=0)
                comm.Send(buffer, dest=0)
            round_trips.append(time.perf_counter() - start)
        taken.insert(0, statistics.median(round_trips[2:]) / 2)
    return taken
