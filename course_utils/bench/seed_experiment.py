"""The experiment that the course began with: four ways to add vectors up, over the vector's size, behind real links.

In one cell: `from course_utils.bench.seed_experiment import figure; figure(nodes=4)`.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.bench.network import gather_scatter, nodes_of, ring_allreduce, timed

if TYPE_CHECKING:
    from mpi4py import MPI

SIZES = tuple(4 * 4**power for power in range(4, 11))  # 1 KB to 4 MB
_SEGMENT = 65536  # numbers


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


def tree(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add the vectors up along a binomial tree to rank 0, and send the sum back along it: 2 ⌈log₂ n⌉ rounds."""
    distance, incoming = 1, np.empty_like(vector)
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(vector, dest=comm.rank - distance)
        elif comm.rank % (2 * distance) == 0 and comm.rank + distance < comm.size:
            comm.Recv(incoming, source=comm.rank + distance)
            vector += incoming
        distance *= 2
    while distance > 1:
        distance //= 2
        if comm.rank % (2 * distance) == distance:
            comm.Recv(vector, source=comm.rank - distance)
        elif comm.rank % (2 * distance) == 0 and comm.rank + distance < comm.size:
            comm.Send(vector, dest=comm.rank + distance)


def asynchronous_ring(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """The ring, but without rounds: chunks in segments, each passed on as soon as it has come and been added."""
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    chunks = np.array_split(vector, world_size)
    steps = 2 * (world_size - 1)

    def segments(step: int) -> list[np.ndarray]:
        chunk = chunks[(rank - step) % world_size]
        return [chunk[begin : begin + _SEGMENT] for begin in range(0, len(chunk), _SEGMENT)]

    adding = [[np.empty_like(part) for part in segments(step + 1)] for step in range(world_size - 1)]
    posted = [[comm.Irecv(place, source=left) for place in places] for places in adding]
    sending = [comm.Isend(part, dest=right) for part in segments(0)]
    for step in range(steps):
        for number, part in enumerate(segments(step + 1)):
            if step < world_size - 1:
                posted[step][number].Wait()
                part += adding[step][number]
            else:
                comm.Recv(part, source=left)
            if step < steps - 1:
                sending.append(comm.Isend(part, dest=right))
    for request in sending:
        request.Wait()


ALGORITHMS: dict[str, Callable] = {
    "gather-scatter": gather_scatter,
    "tree": tree,
    "ring": ring_allreduce,
    "asynchronous ring": asynchronous_ring,
}
"""By the names they have in the picture; each adds up in place."""
