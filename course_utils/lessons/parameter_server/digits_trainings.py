"""The digits trained with synchronous, asynchronous and local SGD, and in DiLoCo's rounds.

The weights of lesson 1's small network are one flat vector. Its gradient takes less than a millisecond, so each rank
also sleeps for as long as a larger network would compute. Ranks that sleep can share two cores without getting in each
other's way. A virtual rank does not sleep: the time passes on its clock.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.messages.played_computation import compute_for
from course_utils.lessons.parameter_server.flat_network import first_weights, flat_gradient, own_batches, unflat
from course_utils.lessons.parameter_server.local_sgd import local_sgd_round
from course_utils.lessons.parameter_server.outer_optimizer import AdamW, outer_step
from course_utils.lessons.parameter_server.server import (
    SERVER,
    ServerHistory,
    measure_staleness,
    parameter_server_step,
    serve,
    staleness_scaled_lr,
    work,
)
from course_utils.lessons.sgd.digits_network import Arrays, accuracy, loss_and_gradients
from course_utils.trace.recorder import phase

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


@dataclass
class Curve:
    """How one training went, seen from rank 0.

    Attributes:
        epochs: passes over all training images, counted over all workers, at each point.
        seconds: since the beginning, at each point.
        accuracies: the share of test images recognised, at each point.
        staleness: of every update; empty if nothing can be stale.
    """

    epochs: list[float]
    seconds: list[float]
    accuracies: list[float]
    staleness: list[int]

    def reached(self, accuracy: float) -> float | None:
        """Return the seconds after which the accuracy was reached first, or None if it never was."""
        return next((s for s, a in zip(self.seconds, self.accuracies, strict=True) if a >= accuracy), None)

    def epochs_to(self, accuracy: float) -> float | None:
        """Return the epochs after which the accuracy was reached first, or None if it never was."""
        return next((e for e, a in zip(self.epochs, self.accuracies, strict=True) if a >= accuracy), None)


@dataclass(frozen=True)
class Served:
    """What an asynchronous server received from its workers.

    Attributes:
        workers: how many.
        rate: updates per second, in the second half of the training.
        staleness: mean, of the updates after each worker's first.
        accuracy: share of test images recognised at the end.
    """

    workers: int
    rate: float
    staleness: float
    accuracy: float


@dataclass(frozen=True)
class Pace:
    """How long a gradient takes.

    Attributes:
        seconds: on every worker.
        straggler: the rank that is slower, or None if all are equally fast.
        factor: how many times longer a gradient takes on the straggler.
        share: for which share of its gradients the straggler is slower; they are drawn by chance, with a fixed seed.
    """

    seconds: float = 0.005
    straggler: int | None = None
    factor: float = 5.0
    share: float = 1.0

    def of(self, rank: int) -> float:
        """Return the seconds that this rank takes for a gradient, on the straggler for a slow one."""
        return self.seconds * (self.factor if rank == self.straggler else 1.0)

    def gradients_of(self, rank: int) -> Iterator[float]:
        """Yield the seconds that each of this rank's gradients takes, without end."""
        rng = np.random.default_rng(rank)
        while True:
            yield self.of(rank) if rng.random() < self.share else self.seconds


def own_gradients(
    comm: "MPI.Intracomm", data: Arrays, *, pace: Pace = Pace(), batch_size: int = 32
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of the weights: the gradient of this worker's next batch, after as long as its pace asks for.

    Rank 0 is the server; worker r of W has every W-th image. Nothing moves between ranks.
    """
    workers = max(1, comm.size - 1)
    batches = own_batches(data, (comm.rank - 1) % workers, workers, batch_size, comm.rank)
    seconds = pace.gradients_of(comm.rank)
    return lambda weights: _paced_gradient(comm, weights, next(batches), next(seconds))


def train_synchronously(
    comm: "MPI.Intracomm",
    data: Arrays,
    updates: int,
    *,
    batch_size: int = 32,
    rate: float = 0.1,
    pace: Pace = Pace(),
    every: int = 10,
) -> Curve | None:
    """Train with a server that waits for every worker at every step. Rank 0 returns the curve, workers nothing.

    Args:
        updates: of the server; each uses one batch of every worker.
    """
    next_gradient = own_gradients(comm, data, pace=pace, batch_size=batch_size)
    parameters, history = first_weights(0), ServerHistory()
    history.snapshot(0, parameters)
    for update in range(1, updates + 1):
        gradient = np.zeros_like(parameters) if comm.rank == SERVER else next_gradient(parameters)
        parameter_server_step(comm, parameters, gradient, rate)
        if update % every == 0:
            history.snapshot(update, parameters)
    return training_curve(history, data, batch_size * (comm.size - 1)) if comm.rank == SERVER else None


def train_asynchronously(
    comm: "MPI.Intracomm",
    data: Arrays,
    updates: int,
    *,
    batch_size: int = 32,
    rate: float = 0.1,
    scaled: bool = False,
    pace: Pace = Pace(),
    every: int = 30,
) -> Curve | None:
    """Train with a server that waits for no worker. Rank 0 returns the curve, workers nothing.

    Args:
        updates: of the server; each uses one batch of one worker.
        scaled: whether old gradients count less, by `staleness_scaled_lr`.
    """
    parameters = first_weights(0)
    if comm.rank != SERVER:
        work(comm, parameters, own_gradients(comm, data, pace=pace, batch_size=batch_size))
        return None
    rate_of = (lambda age: staleness_scaled_lr(rate, age)) if scaled else (lambda age: rate)
    history = serve(comm, parameters, rate_of, updates, every)
    return training_curve(history, data, batch_size)


def train_locally(
    comm: "MPI.Intracomm",
    data: Arrays,
    rounds: int,
    *,
    local_steps: int = 8,
    batch_size: int = 32,
    rate: float = 0.1,
    pace: Pace = Pace(),
) -> Curve | None:
    """Train by local SGD: no rank is a server, and all average their weights after this many local steps.

    With one local step this is synchronous SGD by all-reduce, because the mean of the weights after a step from the
    same weights is a step against the mean of the gradients. Rank 0 returns the curve, the others nothing.
    """
    batches = own_batches(data, comm.rank, comm.size, batch_size, comm.rank)
    parameters, history = first_weights(0), ServerHistory()
    history.snapshot(0, parameters)

    def gradient(weights: np.ndarray, batch: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return _paced_gradient(comm, weights, batch, pace.of(comm.rank))

    for number in range(1, rounds + 1):
        local_sgd_round(comm, parameters, gradient, [next(batches) for _ in range(local_steps)], rate)
        history.snapshot(number, parameters)
    return training_curve(history, data, batch_size * local_steps * comm.size) if comm.rank == 0 else None


def train_in_rounds(
    comm: "MPI.Intracomm",
    data: Arrays,
    rounds: int,
    method: str,
    *,
    inner_steps: int = 16,
    batch_size: int = 32,
    rate: float = 0.003,
) -> list[float]:
    """Train with AdamW on every rank's own images in one of three ways; return the loss on all images after each round.

    Args:
        rounds: each of `inner_steps` steps.
        method: "every step" for the mean gradient at every step, "mean" for the mean weights after each round, "outer"
            for DiLoCo's outer step after each round.
        rate: of AdamW, whose state stays on its rank.
    """
    batches = own_batches(data, comm.rank, comm.size, batch_size, comm.rank)
    parameters, losses = first_weights(0), []
    adam, started, velocity = AdamW(len(parameters), rate), parameters.copy(), np.zeros_like(parameters)
    total = np.empty_like(parameters)
    for _ in range(rounds):
        for _ in range(inner_steps):
            gradient = flat_gradient(parameters, *next(batches))
            if method == "every step":
                comm.Allreduce(gradient, total)
                gradient = total / comm.size
            adam.step(parameters, gradient)
        if method == "mean":
            outer_step(comm, parameters, started, velocity, rate=1.0, momentum=0.0)
        elif method == "outer":
            outer_step(comm, parameters, started, velocity)
        losses.append(loss_and_gradients(unflat(parameters), data[0], data[1])[0])
    return losses


def _paced_gradient(
    comm: "MPI.Intracomm", weights: np.ndarray, batch: tuple[np.ndarray, np.ndarray], seconds: float
) -> np.ndarray:
    """Return the batch's gradient after the time that a larger network would need; this is a phase of the trace."""
    with phase("gradient"):
        compute_for(comm, seconds)
        return flat_gradient(weights, *batch)


def training_curve(history: ServerHistory, data: Arrays, examples_per_update: int) -> Curve:
    """Return the curve of a training from what its rank 0 kept: accuracies are calculated now, off the clock.

    Args:
        examples_per_update: training images behind each update.
    """
    train_x, _, test_x, test_y = data
    return Curve(
        [updates * examples_per_update / len(train_x) for updates in history.updates],
        history.seconds,
        [accuracy(unflat(snapshot), test_x, test_y) for snapshot in history.snapshots],
        measure_staleness(history.log),
    )
