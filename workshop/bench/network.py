"""Do the links of nodes on one machine behave as links do? Against their own rate and latency, and against theory.

gloo and the course's ring against the line rate; gather-scatter against the ring, which takes n times as long on
n nodes, as its root's link carries everything; a round trip against twice the latency.
"""

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce
from course_utils.lessons.allreduce.ring import ring_allreduce
from workshop.bench.ranks import nodes_of
from workshop.bench.rows import Row, ratio_row

if TYPE_CHECKING:
    from mpi4py import MPI


RATES = (100, 200, 500)  # Mbit/s
NODES = {4: 200, 8: 100}  # Mbit/s; two cores do not keep 8 nodes' links full at more
LATENCIES = (1, 5, 20)  # ms
_RATE_OF_LATENCY = 1000  # Mbit/s
_SECONDS = 1.0  # what one all-reduce by the ring shall take
_TRIPS = 50


def run(runs: int) -> list[Row]:
    """Measure on nodes of their own, one set after the other; what is compared, by turns on the same set."""
    rows = []
    for rate in RATES:
        rows += line_rate(rate, runs)
    for nodes in NODES:
        rows += against_theory(nodes, runs)
    for latency in LATENCIES:
        rows += round_trips(latency, runs)
    return rows


def line_rate(rate: int, runs: int) -> list[Row]:
    """Bits that every node sends per second in an all-reduce, as a share of its link's rate."""
    with nodes_of(4, rate) as ranks:
        size = _size(4, rate)
        least = 2 * 3 / 4 * size * 8 / (rate * 1e6)
        ring, gloo = [], []
        for _ in range(runs + 1):  # the first warms the connections up
            ring.append(max(ranks.run(timed, ring_allreduce, size).results))
            gloo.append(max(ranks.run(timed_gloo, size, backend="gloo").results))
        names = {
            f"ring, 4 nodes at {rate} Mbit/s / line rate": ring[1:],
            f"gloo, 4 nodes at {rate} Mbit/s / line rate": gloo[1:],
        }
        return [
            ratio_row("network", name, [least] * runs, taken, target=0.9, better="higher")
            for name, taken in names.items()
        ]


def against_theory(nodes: int, runs: int) -> list[Row]:
    """Gather-scatter ÷ ring, ÷ n: 1 where the links are all that counts."""
    with nodes_of(nodes, NODES[nodes]) as ranks:
        size = _size(nodes, NODES[nodes])
        taken: dict[Callable, list[float]] = {gather_broadcast_allreduce: [], ring_allreduce: []}
        for _ in range(runs + 1):
            for function, seconds in taken.items():
                seconds.append(max(ranks.run(timed, function, size).results))
    slow, fast = (seconds[1:] for seconds in taken.values())
    name = f"gather-scatter / ring / {nodes}, {nodes} nodes at {NODES[nodes]} Mbit/s"
    both = [
        ratio_row("network", f"{name} (at least)", slow, [nodes * one for one in fast], target=0.9, better="higher"),
        ratio_row("network", f"{name} (at most)", slow, [nodes * one for one in fast], target=1.1),
    ]
    return both


def round_trips(latency: int, runs: int) -> list[Row]:
    """A byte there and back, against twice the latency."""
    with nodes_of(2, _RATE_OF_LATENCY, f"{latency} ms") as ranks:
        taken = [ranks.run(round_trip).results[0] for _ in range(runs + 1)][1:]
    asked = [2 * latency / 1000] * runs
    return [ratio_row("network", f"round trip / twice the latency, {latency} ms", taken, asked, target=1.2)]


def _size(nodes: int, rate: int) -> int:
    """Bytes of a vector whose all-reduce by the ring takes about `_SECONDS`."""
    return round(rate * 1e6 / 8 * _SECONDS / (2 * (nodes - 1) / nodes)) // 4 * 4


# --- on the ranks ---------------------------------------------------------------------------------------------------


def timed(comm: "MPI.Intracomm", allreduce: Callable, size: int) -> float:
    """Seconds of one all-reduce of so many bytes on this rank, checked."""
    vector = np.full(size // 4, comm.rank, np.float32)
    comm.Barrier()
    begin = time.perf_counter()
    allreduce(comm, vector)
    seconds = time.perf_counter() - begin
    if not (vector == comm.size * (comm.size - 1) / 2).all():
        raise ValueError("the all-reduce is wrong")
    return seconds


def timed_gloo(size: int) -> float:
    """The same with torch's gloo."""
    import torch
    import torch.distributed as dist

    vector = torch.full((size // 4,), float(dist.get_rank()))
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(vector)
    return time.perf_counter() - begin


def round_trip(comm: "MPI.Intracomm") -> float:
    """Seconds for one byte from rank 0 to rank 1 and back: the median of many."""
    byte, taken = np.zeros(1, np.uint8), []
    for _ in range(_TRIPS):
        comm.Barrier()
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.Send(byte, dest=1)
            comm.Recv(byte, source=1)
        else:
            comm.Recv(byte, source=0)
            comm.Send(byte, dest=0)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)
