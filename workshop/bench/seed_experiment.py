"""The experiment that the course began with: four ways to add vectors up, over the vector's size, behind real links.

In one cell: `from workshop.bench.seed_experiment import figure; figure(nodes=4)`.
"""

import statistics
from collections.abc import Callable, Sequence

from course_utils.lessons.allreduce.async_ring import async_ring_allreduce
from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.allreduce.tree import tree_allreduce
from workshop.bench.network import timed
from workshop.bench.ranks import nodes_of

SIZES = tuple(4 * 4**power for power in range(4, 11))  # 1 KB to 4 MB


def figure(nodes: int = 4, rate: int = 200, sizes: Sequence[int] = SIZES, runs: int = 3):
    """Measure on so many nodes behind links of `rate` Mbit/s, and draw, with the least time for so many bytes.

    A small vector may be faster: a link that has rested lets its first bytes through at once (`network.shaped`).

    Raises:
        CourseError: the system allows no nodes.
    """
    from course_utils import draw

    seconds = measure(nodes, rate, sizes, runs)
    bound = [2 * (nodes - 1) / nodes * size * 8 / (rate * 1e6) for size in sizes]
    title = f"{nodes} nodes at {rate} Mbit/s (dashed: the least time for so many bytes)"
    return draw.times_by_size(sizes, seconds, title, bound)


def measure(nodes: int, rate: int, sizes: Sequence[int], runs: int) -> dict[str, list[float]]:
    """For each algorithm the median seconds at each size: all algorithms by turns, on the same nodes."""
    with nodes_of(nodes, rate) as ranks:
        for function in ALGORITHMS.values():  # warms the connections up
            ranks.run(timed, function, sizes[0])
        taken: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
        for size in sizes:
            rounds = [
                {name: max(ranks.run(timed, function, size).results) for name, function in ALGORITHMS.items()}
                for _ in range(runs)
            ]
            for name, seconds in taken.items():
                seconds.append(statistics.median(one[name] for one in rounds))
    return taken


ALGORITHMS: dict[str, Callable] = {
    "gather-scatter": gather_broadcast_allreduce,
    "tree": tree_allreduce,
    "ring": ring_allreduce,
    "asynchronous ring": async_ring_allreduce,
}
"""By the names they have in the picture; each adds up in place."""
