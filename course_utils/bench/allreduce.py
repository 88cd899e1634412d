"""All-reduces: every algorithm over the vector's size, on this machine and behind links, and the limits they run into.

Against MPI_Allreduce on two ranks, against gloo behind links, against copying memory; and the times that
`allreduce_time` predicts from messages between two ranks, at sizes and numbers of ranks that the fit has not seen.
"""

import contextlib
import io
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from course_utils.allreduce import ALGORITHMS, async_ring_allreduce
from course_utils.allreduce.cost import Network, allreduce_time, fastest
from course_utils.allreduce.fit import fit_network, median_error
from course_utils.bench.allreduce_ranks import (
    MEMCPY,
    Seconds,
    by_turns,
    gamma_here,
    ping_pongs,
    rested_messages,
    with_and_without_mallopt,
)
from course_utils.bench.network import nodes_of, timed, timed_gloo
from course_utils.bench.rows import Row, ratio_row, seconds_row, spread

if TYPE_CHECKING:
    from course_utils.cluster.ranks import Ranks

FEWEST = 7  # runs
LOOPBACK_SIZES = (4, 256, 4096, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26)  # bytes
AGAINST_MPI = {1 << 20: 1.0, 1 << 22: 1.25, 1 << 24: 1.25, 1 << 26: 1.4}  # bytes: how many times as fast
LINKS = {4: ("200 Mbit/s", (2, 3, 4)), 8: ("100 Mbit/s", (8,))}  # nodes: link, ranks that take part
LATENCY = "1 ms"
LINK_SIZES = (4, 1024, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 21)
AGAINST_GLOO = (1 << 20, 1 << 22)
MESSAGES = (1, *(1000 * kilo for kilo in (1, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1000, 3000)))
PING_PONG = tuple(4**power for power in range(12))  # 1 B to 4 MB
FITS = {3: 0.04, 1: 0.13}  # segments: the median error that is allowed
NAMED, PREDICTED = 95.0, 0.05  # percent of the cases; median error
TIE = 1.05  # nearer than this, two algorithms are equally fast


def run(runs: int) -> list[Row]:
    """Measure on this machine, against MPI's own, and behind links; at least seven runs of each."""
    runs = max(runs, FEWEST)
    return [
        *loopback(runs),
        *against_mpi(runs),
        *messages_here(runs),
        *(r for nodes in LINKS for r in links(nodes, runs)),
    ]


def loopback(runs: int, sizes: Sequence[int] = LOOPBACK_SIZES) -> list[Row]:
    """Every algorithm and a copy of as many bytes as the ring sends, on two and four ranks of this machine."""
    with ranks_of(4) as ranks:
        rows = []
        for world_size in (2, 4):
            seconds = ranks.run(by_turns, ALGORITHMS, sizes, runs, ranks=world_size).results[0]
            rows += sweep_rows(seconds, f"P = {world_size}, one machine")
            longest = max(sizes)
            ring, limit = seconds["asynchronous ring", longest], seconds[MEMCPY, longest]
            name = f"asynchronous ring / memcpy, {said(longest)}, P = {world_size}, one machine"
            rows.append(ratio_row("allreduce", name, ring, limit))
    return rows


def against_mpi(runs: int) -> list[Row]:
    """MPI_Allreduce ÷ the asynchronous ring on two ranks, the better of MPI's two ways to get memory at each size."""
    rows = []
    with ranks_of(4) as ranks:
        for size, target in AGAINST_MPI.items():
            run = ranks.run(with_and_without_mallopt, size, 2 * runs + 1)
            pairs = {"default": run.results[0], "thresholds raised": run.results[2]}
            ours = pairs["default"]["ring"]
            better = min(pairs, key=lambda memory: statistics.median(pairs[memory]["MPI"]))
            name = f"MPI_Allreduce ({better}) / asynchronous ring, {said(size)}, P = 2"
            rows.append(ratio_row("allreduce", name, pairs[better]["MPI"], ours, target=target, better="higher"))
    return rows


def messages_here(runs: int) -> list[Row]:
    """How well one line, and three, describe the messages between two ranks of this machine."""
    with ranks_of(2) as ranks:
        taken = [ranks.run(ping_pongs, PING_PONG).results[0] for _ in range(runs)]
    rows = []
    for segments, target in FITS.items():
        errors = [median_error(fit_network(PING_PONG, one, segments=segments), PING_PONG, one) for one in taken]
        name = f"messages of 1 B to 4 MB, median error of {segments} segment{'s' * (segments > 1)}"
        rows.append(percent_row(name, [100 * error for error in errors], 100 * target, "lower"))
    return rows


def links(nodes: int, runs: int) -> list[Row]:
    """Every algorithm behind links, gloo, and what was predicted from messages between two of the nodes."""
    rate, world_sizes = LINKS[nodes]
    where = f"{nodes} nodes at {rate}, {LATENCY}"
    with nodes_of(nodes, int(rate.split()[0]), LATENCY) as ranks:
        ranks.run(by_turns, ALGORITHMS, (1 << 20,), 1)  # TCP finds the links' rate
        network = fitted(ranks, runs)
        seconds = {p: ranks.run(by_turns, ALGORITHMS, LINK_SIZES, runs, ranks=p).results[0] for p in world_sizes}
        rows = [row for p in world_sizes for row in sweep_rows(seconds[p], f"P = {p}, {where}")]
        for size in AGAINST_GLOO:
            ring, gloo = [], []
            for _ in range(runs + 1):
                ring.append(max(ranks.run(timed, async_ring_allreduce, size).results))
                gloo.append(max(ranks.run(timed_gloo, size, backend="gloo").results))
            name = f"gloo / asynchronous ring, {said(size)}, P = {nodes}, {where}"
            target = 0.98
            rows.append(ratio_row("allreduce", name, gloo[1:], ring[1:], target=target, better="higher"))
    return rows + prediction_rows(seconds, network, where)


@contextlib.contextmanager
def ranks_of(number: int) -> Iterator["Ranks"]:
    """So many ranks of this machine for as long as the block lasts."""
    from course_utils.cluster import start

    with contextlib.redirect_stdout(io.StringIO()):
        ranks = start(number)
    try:
        yield ranks
    finally:
        ranks.stop()


def fitted(ranks: "Ranks", runs: int) -> Network:
    """The network that messages between ranks 0 and 1 show."""
    seconds, overhead = ranks.run(rested_messages, MESSAGES, runs, ranks=2).results[0]
    gamma = ranks.run(gamma_here, ranks=2).results[0]
    return fit_network(MESSAGES, seconds, gamma=gamma, shared=True, overhead=overhead)


def prediction_rows(seconds: dict[int, Seconds], network: Network, where: str) -> list[Row]:
    """How far the predictions are off, and how often they name the fastest; an equally fast one is as good."""
    errors, right = [], []
    for world_size, taken in seconds.items():
        measured = {case: statistics.median(times) for case, times in taken.items()}
        for size in dict.fromkeys(size for _, size in measured):
            predicted = {name: allreduce_time(name, world_size, size, network) for name in ALGORITHMS}
            errors += [abs(predicted[name] / measured[name, size] - 1) for name in ALGORITHMS]
            least = min(measured[name, size] for name in ALGORITHMS)
            right.append(100.0 * (measured[fastest(world_size, size, network), size] <= TIE * least))
    share = sum(right) / len(right)
    return [
        percent_row(f"predicted times, median error, {where}", [100 * e for e in errors], 100 * PREDICTED, "lower"),
        Row("allreduce", f"fastest named rightly, {where}", share, "%", "higher", NAMED, 0.0, len(right)),
    ]


def percent_row(metric: str, values: Sequence[float], target: float, better: str) -> Row:
    """The median of percentages."""
    return Row("allreduce", metric, statistics.median(values), "%", better, target, spread(values), len(values))


def sweep_rows(seconds: Seconds, where: str) -> list[Row]:
    """A row for each algorithm and size."""
    return [
        seconds_row("allreduce", f"{name}, {said(size)}, {where}", taken) for (name, size), taken in seconds.items()
    ]


def said(nbytes: int) -> str:
    """4 B, 64 KB, 16 MB; a KB is 1024 bytes here."""
    for unit, power in (("MB", 20), ("KB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):g} {unit}"
    return f"{nbytes} B"
