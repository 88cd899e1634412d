"""The measurements of lesson 8 that its page, its slides and its bench share: a server's link, many workers, races."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.allreduce_times import measure
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.parameter_server.digits_trainings import (
    Curve,
    Pace,
    Served,
    train_asynchronously,
    train_locally,
)
from course_utils.lessons.parameter_server.server import parameter_server_step
from course_utils.lessons.sgd.digits_network import Arrays
from course_utils.measuring import by_turns

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

    from course_utils.ranks.ranks import Ranks
    from course_utils.ranks.virtual.virtual_ranks import VirtualRanks

WAYS = {
    "synchronous": (train_locally, 56, {"local_steps": 1, "rate": 0.6, "ranks": 4}),
    "asynchronous": (train_asynchronously, 224, {"rate": 0.15, "every": 8, "ranks": 5}),
    "local": (train_locally, 14, {"local_steps": 4, "rate": 0.6, "ranks": 4}),
}
"""Three ways for four workers through the same number of images: what runs, its updates or rounds, and its options.

One step against the mean of four gradients has four times the rate of a step against one of them.
"""


def through_a_server(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Use the server's step as an all-reduce: from weights 0, with the rate −W, it adds up what W workers send.

    Args:
        vector: (n,), read on the workers; on return the sum of theirs, on all ranks.
    """
    weights = np.zeros_like(vector)
    parameter_server_step(comm, weights, vector, rate=1 - comm.size)
    vector[:] = weights


def link_seconds(ranks: "Ranks", workers: Sequence[int], nbytes: int, runs: int = 3) -> dict[str, list[list[float]]]:
    """Return the seconds of all runs of a step for these numbers of workers, through a server and around a ring.

    The server is an additional rank. The keys are "server" and "ring", each with the runs of every number of workers.
    """
    taken: dict[str, list[list[float]]] = {"server": [], "ring": []}
    for number in workers:
        for name, allreduce in {"server": through_a_server, "ring": ring_allreduce}.items():
            size = number + (name == "server")
            taken[name].append(measure(ranks, {name: allreduce}, [nbytes], runs, size)[name][0])
    return taken


def served(ranks: "Ranks | VirtualRanks", images: Arrays, workers: int, pace: Pace) -> Served:
    """Train asynchronously with this many workers, real or virtual, and at least five updates of each worker."""
    every = 10
    updates = max(150, 5 * workers)
    curve = ranks.run(train_asynchronously, images, updates, pace=pace, every=every, ranks=workers + 1).results[0]
    half = len(curve.seconds) // 2
    took = curve.seconds[-1] - curve.seconds[half]
    rate = every * (len(curve.seconds) - 1 - half) / took
    return Served(workers, rate, float(np.mean(curve.staleness[workers:])), curve.accuracies[-1])


def race(ranks: "Ranks", images: Arrays, paces: Mapping[str, Pace], runs: int = 3) -> dict[str, dict[str, list[Curve]]]:
    """Train in all three ways at every pace, by turns; return for each pace and way the curves of all runs."""

    def curve(setting: str, name: str) -> Curve:
        train, updates, options = WAYS[name]
        return ranks.run(train, images, updates, pace=paces[setting], **options).results[0]

    trainings = {(setting, name): partial(curve, setting, name) for setting in paces for name in WAYS}
    curves = by_turns(trainings, runs)
    return {setting: {name: curves[setting, name] for name in WAYS} for setting in paces}
