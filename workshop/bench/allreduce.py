"""All-reduces: every algorithm over the vector's size, on this machine and behind links, and the limits they run into.

Against MPI_Allreduce on two ranks, against gloo behind links, against copying memory; and the times that
`predicted_seconds` predicts from messages between two ranks, at sizes and numbers of ranks that the fit has not seen.
"""

import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.async_ring import async_ring_allreduce
from course_utils.lessons.allreduce.cost_model import NAMES, Network
from course_utils.lessons.allreduce.network_fit import fit_network
from course_utils.lessons.allreduce.network_topology import Topology, switch
from course_utils.lessons.allreduce.shared_links import chain_seconds, predicted_seconds
from course_utils.measuring import Compared
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from workshop.bench.allreduce_ranks import (
    FURTHER_MESSAGE,
    MEMCPY,
    MESSAGE,
    Seconds,
    gamma_here,
    ping_pongs,
    ring_and_mpi,
    sweep,
    turns_of,
)
from workshop.bench.network import ring_and_gloo
from workshop.bench.ranks import nodes_of, ranks_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

FEWEST = 7  # runs
LOOPBACK_SIZES = (4, 256, 4096, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26)  # bytes
AGAINST_MPI = {1 << 20: 1.0, 1 << 22: 1.25, 1 << 24: 1.25, 1 << 26: 1.4}  # bytes: how many times as fast
LINKS = {4: ("200 Mbit/s", (2, 3, 4)), 8: ("100 Mbit/s", (8,))}  # nodes: link, ranks that take part
LATENCY = "1 ms"
LINK_SIZES = (4, 1024, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 21)
AGAINST_GLOO = (1 << 20, 1 << 22)
SHORTEST = (1, 1000)  # bytes: messages that cost no more than an empty one
MESSAGES = (1, *(1000 * kilo for kilo in (1, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1000, 3000)))
PING_PONG = tuple(4**power for power in range(12))  # 1 B to 4 MB
FITS = {3: 0.04, 1: 0.13}  # segments: the median error that is allowed
NAMED, PREDICTED, VIRTUAL = 95.0, 0.05, 0.10  # percent of the cases; median errors
BURSTS = range(0, 256_001, 2_000)  # bytes that are tried
LONG = 1 << 26  # bytes; shorter vectors are added more often


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
            seconds = ranks.run(sweep, ALGORITHMS, sizes, runs, ranks=world_size).results[0]
            rows += sweep_rows(seconds, f"P = {world_size}, one machine")
            longest = max(sizes)
            ring, limit = seconds["asynchronous ring", longest], seconds[MEMCPY, longest]
            name = f"asynchronous ring / memcpy, {size_text(longest)}, P = {world_size}, one machine"
            rows.append(ratio_row("allreduce", name, ring, limit))
    return rows


def against_mpi(runs: int) -> list[Row]:
    """MPI_Allreduce ÷ the asynchronous ring on two ranks, at each size with the better of two ways to keep memory.

    Raised thresholds of malloc spare MPI from asking the system for memory at every call; ours asks for little.
    """
    rows = []
    with ranks_of(4) as ranks:
        for size, target in AGAINST_MPI.items():
            ours: list[float] = []
            mpi: dict[str, list[float]] = {"default": [], "thresholds raised": []}
            for _ in range(runs):
                for pair, memory in enumerate(mpi):
                    seconds = ranks.run(ring_and_mpi, size, 3 * min(8, LONG // size), pair).results[2 * pair]
                    mpi[memory] += seconds["MPI"]
                    ours += seconds["ring"] if memory == "default" else []
            better = min(mpi, key=lambda memory, mpi=mpi: statistics.median(mpi[memory]))
            name = f"MPI_Allreduce ({better}) / asynchronous ring, {size_text(size)}, P = 2"
            rows.append(ratio_row("allreduce", name, mpi[better], ours, target=target, better="higher"))
    return rows


def messages_here(runs: int) -> list[Row]:
    """How well one line, and three, describe the messages between two ranks of this machine."""
    with ranks_of(2) as ranks:
        taken = [ranks.run(ping_pongs, PING_PONG).results[0] for _ in range(runs)]
    rows = []
    for segments, target in FITS.items():
        errors = [
            median_error(fit_network(PING_PONG, seconds, segments=segments), PING_PONG, seconds) for seconds in taken
        ]
        name = f"messages of 1 B to 4 MB, median error of {segments} segment{'s' * (segments > 1)}"
        rows.append(percent_row(name, [100 * error for error in errors], 100 * target, "lower"))
    return rows


def links(nodes: int, runs: int) -> list[Row]:
    """Every algorithm behind links, gloo, and what was predicted from messages between two of the nodes."""
    rate, world_sizes = LINKS[nodes]
    where = f"{nodes} nodes at {rate}, {LATENCY}"
    with nodes_of(nodes, int(rate.split()[0]), LATENCY) as ranks:
        ranks.run(sweep, ALGORITHMS, (1 << 20,), 1)  # TCP finds the links' rate
        seconds: dict[int, Seconds] = {p: {} for p in sorted({2, *world_sizes})}
        for number in range(runs + 1):  # all numbers of ranks by turns, too; a first round is not counted
            for p, taken in seconds.items():
                algorithms = ALGORITHMS if p in world_sizes else {}
                lengths = MESSAGES if p == 2 else SHORTEST if p == nodes else ()
                measured = ranks.run(sweep, algorithms, LINK_SIZES, 1, lengths, warm_ups=0, ranks=p).results[0]
                for case, times in measured.items() if number else ():
                    taken.setdefault(case, []).extend(times)
        gamma = ranks.run(gamma_here).results[0]
        rows = [row for p in world_sizes for row in sweep_rows(seconds[p], f"P = {p}, {where}")]
        for size in AGAINST_GLOO:
            taken = ring_and_gloo(ranks, async_ring_allreduce, size, runs)
            name = f"gloo / asynchronous ring, {size_text(size)}, P = {nodes}, {where}"
            target = 0.98
            rows.append(ratio_row("allreduce", name, taken["gloo"], taken["ring"], target=target, better="higher"))
    network = fitted(seconds[2], nodes, seconds[nodes], gamma)
    return rows + prediction_rows({p: seconds[p] for p in world_sizes}, network, where)


def fitted(pair: Seconds, nodes: int, busy: Seconds, gamma: float) -> Network:
    """The network that messages between two of the nodes show, and the shortest ones while all nodes send.

    No all-reduce, and of more than two nodes nothing but an empty message, goes into the fit.
    """
    seconds = [statistics.median(pair[MESSAGE, size]) for size in MESSAGES]
    seconds[0] = shortest(pair)
    return fit_links(
        MESSAGES,
        seconds,
        [turns_of(size) for size in MESSAGES],
        busy=(nodes, shortest(busy)),
        gamma=gamma,
        overhead=statistics.median(pair[FURTHER_MESSAGE, MESSAGES[0]]),
    )


def fit_links(
    nbytes: Sequence[int],
    seconds: Sequence[float],
    turns: Sequence[int],
    *,
    busy: tuple[int, float] | None = None,
    gamma: float = 0.0,
    overhead: float = 0.0,
) -> Network:
    """Fit a `Network` of nodes behind links to the seconds of a message that two nodes swap.

    Alpha is the shortest message, beta what further bytes add to the longest. Between lies what a link that has rested
    lets through at once, a burst: the number of bytes is taken that explains all sizes best.

    Args:
        nbytes: sizes of the messages, rising, the first next to nothing.
        seconds: how long each took when it was swapped `turns` times in a row, divided by `turns`.
        turns: for each size; in each turn the message goes once over the same links.
        busy: (ranks, more than two; seconds of the shortest message while this many swap with their neighbours), for
            `Network.work`.
        gamma, overhead: as in `Network`.

    Raises:
        CourseError: sizes that do not rise, or fewer than three.
    """
    if len(nbytes) < 3 or len(nbytes) != len(seconds) or list(nbytes) != sorted(set(nbytes)):
        raise CourseError(f"Links need at least 3 sizes, rising, and a time for each; here are {len(nbytes)} sizes.")
    work = max(0.0, (busy[1] - seconds[0]) / (busy[0] - 2)) if busy else 0.0
    alpha, beta = seconds[0], (seconds[-1] - seconds[-2]) / (nbytes[-1] - nbytes[-2])

    def network(burst: int, alpha: float) -> Network:
        lines = ((0.0, alpha, 0.0), (float(burst), alpha - beta * burst, beta))
        return Network(alpha, beta, gamma, lines, True, overhead, work)

    def error(burst: int) -> float:
        taken = [chain_seconds([(1, n)] * t, network(burst, alpha)) / t for n, t in zip(nbytes, turns, strict=True)]
        return sum(abs(predicted / measured - 1) for predicted, measured in zip(taken, seconds, strict=True))

    return network(min(BURSTS, key=error), alpha - 2 * work)  # two ranks swap two messages


def shortest(taken: Seconds) -> float:
    """The median over all messages that are as good as empty."""
    return statistics.median(seconds for size in SHORTEST for seconds in taken[MESSAGE, size])


def prediction_rows(seconds: dict[int, Seconds], network: Network, where: str) -> list[Row]:
    """How far predictions and virtual times are off; how often the fastest is named, strictly and with its ties."""
    errors, virtual, strictly, right = [], [], [], []
    for world_size, taken in seconds.items():
        nowhere = VirtualRanks(world_size, network=as_topology(world_size, network))
        for size in LINK_SIZES:
            measured = {name: taken[name, size] for name in ALGORITHMS}
            for name, times in measured.items():
                middle = statistics.median(times)
                errors.append(100 * abs(predicted_seconds(name, world_size, size, network) / middle - 1))
                virtual.append(100 * abs(virtual_seconds(nowhere, name, size) / middle - 1))
            named = fastest(world_size, size, network)
            best = min(measured, key=lambda name, measured=measured: statistics.median(measured[name]))
            strictly.append(named == best)
            right.append(not Compared(measured[best], measured[named]).first_is_faster)
    rows = [
        percent_row(f"predicted times, median error, {where}", errors, 100 * PREDICTED, "lower"),
        percent_row(f"virtual times, median error, {where}", virtual, 100 * VIRTUAL, "lower"),
    ]
    for rule, hits in {"strictly the fastest": strictly, "the fastest or tied with it": right}.items():
        share = 100 * sum(hits) / len(hits)
        rows.append(Row("allreduce", f"named: {rule}, {where}", share, "%", "higher", NAMED, 0.0, len(hits)))
    return rows


def fastest(world_size: int, nbytes: float, network: Network) -> str:
    """The algorithm that `predicted_seconds` gives the least time; of equals, the one whose ranks wait least."""
    return min(reversed(NAMES), key=partial(predicted_seconds, world_size=world_size, nbytes=nbytes, network=network))


def median_error(network: Network, nbytes: Sequence[float], seconds: Sequence[float]) -> float:
    """The median relative error of `message_seconds` at measured messages: 0.04 is 4%."""
    return float(np.median([abs(network.message_seconds(n) / t - 1) for n, t in zip(nbytes, seconds, strict=True)]))


def virtual_seconds(nowhere: VirtualRanks, name: str, nbytes: int) -> float:
    """Virtual seconds of an all-reduce of a vector of float32."""
    return nowhere.run(one_vector, ALGORITHMS[name], nbytes // 4).seconds


def one_vector(comm, allreduce, length=4096):
    """One all-reduce of a vector of float32; returns the sum."""
    vector = np.random.default_rng(comm.rank).normal(size=length).astype(np.float32)
    allreduce(comm, vector)
    return vector


def as_topology(world_size: int, network: Network) -> Topology:
    """The fitted network as virtual ranks take it."""
    return switch(
        world_size,
        network.alpha + network.work,  # virtual ranks count the others' messages only
        network.beta,
        overhead=network.overhead,
        gamma=network.gamma,
        burst=network.segments[-1][0],
        work=network.work,
    )


def percent_row(metric: str, values: Sequence[float], target: float, better: str) -> Row:
    """The median of percentages."""
    return value_row("allreduce", metric, values, "%", target=target, better=better)


def sweep_rows(seconds: Seconds, where: str) -> list[Row]:
    """A row for each algorithm and size, and for the copy."""
    cases = [(name, size) for name, size in seconds if name in (*ALGORITHMS, MEMCPY)]
    return [
        seconds_row("allreduce", f"{name}, {size_text(size)}, {where}", seconds[name, size]) for name, size in cases
    ]


def size_text(nbytes: int) -> str:
    """4 B, 64 KB, 16 MB; a KB is 1024 bytes here."""
    for unit, power in (("MB", 20), ("KB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):g} {unit}"
    return f"{nbytes} B"
