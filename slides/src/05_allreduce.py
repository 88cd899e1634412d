"""The pictures of deck 5: all-reduces on nodes behind links, counted and timed; and networks that are simulated."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.allreduce import pictures
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.allreduce_times import measure, message_seconds
from course_utils.lessons.allreduce.async_ring import async_ring_allreduce
from course_utils.lessons.allreduce.bandwidth import bus_bandwidth
from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.allreduce.cost_model import Network, bytes_per_rank
from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce
from course_utils.lessons.allreduce.halving_doubling import halving_doubling_allreduce
from course_utils.lessons.allreduce.message_simulator import simulate_allreduce
from course_utils.lessons.allreduce.network_topology import two_level
from course_utils.lessons.allreduce.recursive_doubling import recursive_doubling_allreduce
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.allreduce.sentences import predictors
from course_utils.lessons.allreduce.shared_links import predicted_seconds
from course_utils.lessons.allreduce.suspicious_ring import WEIGHTS, suspicious_ring
from course_utils.lessons.allreduce.tree import tree_allreduce
from course_utils.words import seconds_text

LENGTH = 50_000  # numbers of 4 bytes
THREE = ("tree", "recursive doubling", "ring")
SIZES = (4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 200_000)
MESSAGES = (1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 200_000)
RUNS = 5
NODE = 8  # ranks of a simulated node
DRAFT = {"SIZES": (4_000, 200_000), "MESSAGES": (1, 20_000, 200_000), "RUNS": 1}


def add_up(comm, allreduce):
    """One all-reduce; a first one lets TCP find the rate of the links."""
    vector = np.full(LENGTH, comm.rank, np.float32)
    allreduce(comm, vector)


def in_segments(comm, vector):
    """The asynchronous ring with two segments a block."""
    async_ring_allreduce(comm, vector, segment_bytes=25_000)


def sums(comm, allreduce):
    """What the algorithm makes of as many numbers as the network has weights."""
    vector = np.random.default_rng(comm.rank).normal(size=WEIGHTS).astype(np.float32)
    allreduce(comm, vector)
    return vector


@cache
def nodes():
    """The ranks that all pictures of this deck run on."""
    return course.start(8, link="50 Mbit/s", latency="3 ms")


@cache
def four(allreduce):
    """One all-reduce on the first four nodes, whose connections are warm."""
    nodes().run(add_up, allreduce, ranks=4)
    return nodes().run(add_up, allreduce, ranks=4)


@cache
def network():
    """What a message costs between two of the nodes."""
    seconds = nodes().run(message_seconds, MESSAGES).results[0]
    beta = (seconds[-1] - seconds[-2]) / (MESSAGES[-1] - MESSAGES[-2])
    return Network(seconds[0], beta, shared=nodes().facts["network"] is not None)


def gather() -> Figure:
    """Everything through rank 0."""
    return four(gather_broadcast_allreduce).timeline("gather and broadcast, 200 KB each")


def pairs() -> Figure:
    """The tree, and recursive doubling."""
    runs = four(tree_allreduce), four(recursive_doubling_allreduce)
    return course.draw.timelines(*runs, titles=["tree", "recursive doubling"], side_by_side=True)


def halving() -> Figure:
    """Halves and quarters there, quarters and halves back."""
    return four(halving_doubling_allreduce).timeline("halving-doubling, 200 KB each")


def ring() -> Figure:
    """A block to the right in every round."""
    return four(ring_allreduce).timeline("ring, 200 KB each")


def segments() -> Figure:
    """The ring in rounds, and without."""
    runs = four(ring_allreduce), four(in_segments)
    whole, segmented = (
        max(event.end for event in run.events) - min(event.start for event in run.events) for run in runs
    )
    title = f"Blocks in one piece: {seconds_text(whole)}, in two segments: {seconds_text(segmented)}"
    return course.draw.timelines(*runs, titles=["ring", "asynchronous ring"], side_by_side=True, title=title)


def traffic() -> Figure:
    """What the busiest rank sends, over the number of ranks."""
    many = [2**k for k in range(1, 11)]
    names = {
        "gather-broadcast": "gather-broadcast",
        "tree": "tree, doubling",
        "ring": "halving-doubling, rings",
    }
    sent = {said: [max(bytes_per_rank(name, p, p)) / 4 / p for p in many] for name, said in names.items()}
    title = "Vectors that the busiest rank sends, by formula"
    return pictures.over_ranks(many, sent, title, y="vectors", unit="{:g}".format)


def suspicious() -> Figure:
    """Where the suspicious ring is wrong."""
    wrong = nodes().run(sums, suspicious_ring, ranks=4).results
    right = nodes().run(sums, ring_allreduce, ranks=4).results[0]
    return pictures.right_and_wrong(wrong, right, block_bounds(WEIGHTS, 4), f"A ring adds up {WEIGHTS:,} numbers")


def crossings() -> Figure:
    """Time over size for 2, 4 and 8 ranks, measured and predicted."""
    measured, predicted = {}, {}
    for ranks in (2, 4, 8):
        algorithms = {name: ALGORITHMS[name] for name in THREE}
        measured[f"{ranks} ranks"] = measure(nodes(), algorithms, SIZES, RUNS, ranks)
        predicted[f"{ranks} ranks"] = predictors(ranks, THREE, predicted_seconds, network())
    return pictures.crossings(SIZES, measured, predicted, "Time over the size of the vector")


def two_levels() -> Figure:
    """A flat ring and two levels on two nodes of two, simulated."""
    slow, fast = (3e-3, 1.7e-7), (3e-4, 2e-9)
    topology = two_level(4, 2, slow, fast, overhead=1e-4)
    runs = [simulate_allreduce(name, 4, 4 * LENGTH, topology, node_size=2) for name in ("ring", "hierarchical")]
    titles = ["ring (simulated)", "hierarchical (simulated)"]
    return course.draw.timelines(*runs, titles=titles, side_by_side=True)


def thousand() -> Figure:
    """Bus bandwidth up to 1,024 ranks, simulated."""
    many = [16, 32, 64, 128, 256, 512, 1024]
    rates: dict[str, list[float]] = {name: [] for name in (*list(ALGORITHMS)[1:5], "hierarchical")}
    for ranks in many:
        cluster = two_level(ranks, NODE, (5e-6, 8e-11), (2e-6, 1e-11), overhead=5e-7)
        for name, line in rates.items():
            seconds = simulate_allreduce(name, ranks, 4e6, cluster, node_size=NODE).seconds
            line.append(bus_bandwidth("all_reduce", ranks, 4e6, seconds) / 1e9)
    title = "Simulated, not run: bus bandwidth in GB/s, 4 MB, nodes of 8"
    return pictures.over_ranks(many, rates, title, y="GB/s", unit="{:g}".format)


FIGURES = {
    "05_gather": gather,
    "05_pairs": pairs,
    "05_halving": halving,
    "05_ring": ring,
    "05_segments": segments,
    "05_traffic": traffic,
    "05_suspicious": suspicious,
    "05_crossings": crossings,
    "05_two_levels": two_levels,
    "05_thousand": thousand,
}
