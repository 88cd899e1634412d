"""Do the links of nodes on one machine behave as links do? Against their own rate and latency, and against theory.

gloo and the course's ring against the line rate; gather-scatter against the ring, which takes n times as long on
n nodes, as its root's link carries everything; a round trip against twice the latency.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from course_utils.lessons.allreduce.allreduce_times import message_seconds, one_run, start_margin
from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.measuring import by_turns
from workshop.bench.ranks import nodes_of
from workshop.bench.rows import Row, ratio_row

if TYPE_CHECKING:
    from mpi4py import MPI

    from course_utils.ranks.ranks import Ranks

RATES = (100, 200, 500)  # Mbit/s
NODES = {4: 200, 8: 100}  # Mbit/s; two cores do not keep 8 nodes' links full at more
LATENCIES = (1, 5, 20)  # ms
_RATE_OF_LATENCY = 1000  # Mbit/s
_SECONDS = 1.0  # what one all-reduce by the ring should take
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
        taken = ring_and_gloo(ranks, ring_allreduce, size, runs)
    return [
        ratio_row(
            "network",
            f"{name}, 4 nodes at {rate} Mbit/s / line rate",
            [least] * runs,
            seconds,
            target=0.9,
            better="higher",
        )
        for name, seconds in taken.items()
    ]


def ring_and_gloo(ranks: "Ranks", ring: Callable, size: int, runs: int) -> dict[str, list[float]]:
    """Seconds of all-reduces by a ring and by gloo, by turns; a first round warms the connections up."""
    measures = {
        "ring": lambda: ranks.run(timed, ring, size).results[0],
        "gloo": lambda: max(ranks.run(timed_gloo, size, backend="gloo").results),
    }
    return by_turns(measures, runs, warm_ups=1)


def against_theory(nodes: int, runs: int) -> list[Row]:
    """Gather-scatter ÷ ring, ÷ n: 1 where the links are all that counts."""
    with nodes_of(nodes, NODES[nodes]) as ranks:
        size = _size(nodes, NODES[nodes])
        measures = {
            algorithm: lambda algorithm=algorithm: ranks.run(timed, algorithm, size).results[0]
            for algorithm in (gather_broadcast_allreduce, ring_allreduce)
        }
        slow, fast = by_turns(measures, runs, warm_ups=1).values()
    name = f"gather-scatter / ring / {nodes}, {nodes} nodes at {NODES[nodes]} Mbit/s"
    by_theory = [nodes * seconds for seconds in fast]
    return [
        ratio_row("network", f"{name} (at least)", slow, by_theory, target=0.9, better="higher"),
        ratio_row("network", f"{name} (at most)", slow, by_theory, target=1.1),
    ]


def round_trips(latency: int, runs: int) -> list[Row]:
    """A byte there and back, against twice the latency."""
    with nodes_of(2, _RATE_OF_LATENCY, f"{latency} ms") as ranks:
        taken = [2 * ranks.run(message_seconds, [1], runs=_TRIPS).results[0][0] for _ in range(runs)]
    asked = [2 * latency / 1000] * runs
    return [ratio_row("network", f"round trip / twice the latency, {latency} ms", taken, asked, target=1.2)]


def _size(nodes: int, rate: int) -> int:
    """Bytes of a vector whose all-reduce by the ring takes about `_SECONDS`."""
    return round(rate * 1e6 / 8 * _SECONDS / (2 * (nodes - 1) / nodes)) // 4 * 4


# --- on the ranks ---------------------------------------------------------------------------------------------------


def timed(comm: "MPI.Intracomm", allreduce: Callable, size: int) -> float:
    """Seconds of one all-reduce of this many bytes, on the rank that takes longest; checked."""
    return one_run(comm, allreduce.__name__, allreduce, size, start_margin(comm))


def timed_gloo(size: int) -> float:
    """The same with torch's gloo."""
    import torch
    import torch.distributed as dist

    vector = torch.full((size // 4,), float(dist.get_rank()))
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(vector)
    return time.perf_counter() - begin
