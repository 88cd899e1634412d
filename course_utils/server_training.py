"""The digits trained with nobody, everybody or hardly anybody waiting: synchronous, asynchronous, and local SGD.

The small network of lesson 1 in one flat vector. Its gradient takes less than a millisecond, so each rank also sleeps
as long as a larger one would compute: ranks that sleep share two cores without getting into each other's way.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from course_utils.digits_network import Arrays, accuracy, loss_and_gradients, new_network
from course_utils.local_sgd import federated_average, local_sgd_round
from course_utils.parameter_server import (
    SERVER,
    ServerHistory,
    measure_staleness,
    parameter_server_step,
    serve,
    staleness_scaled_lr,
    work,
)
from course_utils.sgd import minibatches

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


@dataclass
class Curve:
    """How one training went, seen from rank 0.

    Attributes:
        epochs: passes over all training images, counted over all workers, at each point.
        seconds: since the beginning, at each point.
        accuracies: the share of test images recognised, at each point.
        staleness: of every update; empty where nothing can be stale.
    """

    epochs: list[float]
    seconds: list[float]
    accuracies: list[float]
    staleness: list[int]

    def reached(self, accuracy: float) -> float | None:
        """The seconds after which the accuracy was reached first; None where it never was."""
        return next((s for s, a in zip(self.seconds, self.accuracies, strict=True) if a >= accuracy), None)


@dataclass(frozen=True)
class Pace:
    """How long a gradient takes.

    Attributes:
        seconds: on every worker.
        straggler: the rank that is slower, None for none.
        factor: by how much.
    """

    seconds: float = 0.005
    straggler: int | None = None
    factor: float = 5.0

    def of(self, rank: int) -> float:
        """Seconds that this rank takes for a gradient."""
        return self.seconds * (self.factor if rank == self.straggler else 1.0)


def flat(parameters: list[np.ndarray]) -> np.ndarray:
    """All parameters in one vector, (n,)."""
    return np.concatenate([parameter.ravel() for parameter in parameters])


def unflat(vector: np.ndarray, hidden: int = 32) -> list[np.ndarray]:
    """The network's four arrays as views of the vector."""
    shapes = [(64, hidden), (hidden,), (hidden, 10), (10,)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [piece.reshape(shape) for piece, shape in zip(np.split(vector, ends), shapes, strict=True)]


def flat_gradient(vector: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the batch's loss at these weights, (n,)."""
    return flat(loss_and_gradients(unflat(vector), x, y)[1])


def endless(x: np.ndarray, y: np.ndarray, batch_size: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of these images, epoch after epoch."""
    rng = np.random.default_rng(seed)
    while True:
        for batch in minibatches(len(x), batch_size, rng):
            yield x[batch], y[batch]


def first_weights(seed: int) -> np.ndarray:
    """The same on every rank."""
    return flat(new_network(np.random.default_rng(seed)))


def train_synchronously(
    comm: "MPI.Intracomm",
    data: Arrays,
    updates: int,
    *,
    batch_size: int = 32,
    rate: float = 0.1,
    pace: Pace = Pace(),
    seed: int = 0,
    every: int = 10,
) -> Curve | None:
    """A parameter server that waits for every worker at every step. Rank 0 returns the curve, workers nothing.

    Args:
        updates: of the server; each uses one batch of every worker.
    """
    next_gradient = _worker(comm, data, batch_size, pace, seed)
    parameters, history = first_weights(seed), ServerHistory()
    history.snapshot(0, parameters)
    for update in range(1, updates + 1):
        gradient = np.zeros_like(parameters) if comm.rank == SERVER else next_gradient(parameters)
        parameter_server_step(comm, parameters, gradient, rate)
        if update % every == 0:
            history.snapshot(update, parameters)
    return _curve(history, data, batch_size * (comm.size - 1)) if comm.rank == SERVER else None


def train_asynchronously(
    comm: "MPI.Intracomm",
    data: Arrays,
    updates: int,
    *,
    batch_size: int = 32,
    rate: float = 0.1,
    scaled: bool = False,
    pace: Pace = Pace(),
    seed: int = 0,
    every: int = 30,
) -> Curve | None:
    """A parameter server that waits for nobody. Rank 0 returns the curve, workers nothing.

    Args:
        updates: of the server; each uses one batch of one worker.
        scaled: whether old gradients count less, by `staleness_scaled_lr`.
    """
    parameters = first_weights(seed)
    if comm.rank != SERVER:
        work(comm, parameters, _worker(comm, data, batch_size, pace, seed))
        return None
    rate_of = (lambda age: staleness_scaled_lr(rate, age)) if scaled else (lambda age: rate)
    history = serve(comm, parameters, rate_of, updates, every)
    return _curve(history, data, batch_size)


def train_locally(
    comm: "MPI.Intracomm",
    data: Arrays,
    rounds: int,
    *,
    local_steps: int = 8,
    batch_size: int = 32,
    rate: float = 0.1,
    pace: Pace = Pace(),
    seed: int = 0,
) -> Curve | None:
    """Local SGD without a server: every rank works, and all average their weights after so many steps.

    Rank 0 returns the curve, the others nothing.
    """
    mine = slice(comm.rank, None, comm.size)
    batches = endless(data[0][mine], data[1][mine], batch_size, seed + comm.rank)
    parameters, history = first_weights(seed), ServerHistory()
    history.snapshot(0, parameters)

    def gradient(weights: np.ndarray, batch: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        time.sleep(pace.of(comm.rank))
        return flat_gradient(weights, *batch)

    for number in range(1, rounds + 1):
        local_sgd_round(comm, parameters, gradient, [next(batches) for _ in range(local_steps)], rate)
        history.snapshot(number, parameters)
    return _curve(history, data, batch_size * local_steps * comm.size) if comm.rank == 0 else None


def train_clinics(
    comm: "MPI.Intracomm",
    data: Arrays,
    shards: list[np.ndarray],
    rounds: int,
    *,
    local_epochs: int = 1,
    weighted: bool = True,
    batch_size: int = 16,
    rate: float = 0.05,
    seed: int = 0,
) -> list[float]:
    """Federated averaging: clinics train on their own images, only weights travel. Returns each round's accuracy.

    Args:
        shards: of each rank, the indices of its images; see `skewed_shards`.
        local_epochs: passes over its own images that a clinic makes between two averages.
        weighted: whether a clinic counts by its number of images, or all alike.
    """
    train_x, train_y, test_x, test_y = data
    x, y = train_x[shards[comm.rank]], train_y[shards[comm.rank]]
    rng, parameters, accuracies = np.random.default_rng(seed + comm.rank), first_weights(seed), []
    for _ in range(rounds):
        for _ in range(local_epochs):
            for batch in minibatches(len(x), batch_size, rng):
                parameters -= rate * flat_gradient(parameters, x[batch], y[batch])
        federated_average(comm, parameters, len(x) if weighted else 1)
        accuracies.append(accuracy(unflat(parameters), test_x, test_y))
    return accuracies


def _worker(
    comm: "MPI.Intracomm", data: Arrays, batch_size: int, pace: Pace, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Weights → the gradient of this worker's next batch, after as long as its pace says. Workers share the images."""
    workers = max(1, comm.size - 1)
    mine = slice((comm.rank - 1) % workers, None, workers)
    batches = endless(data[0][mine], data[1][mine], batch_size, seed + comm.rank)

    def next_gradient(parameters: np.ndarray) -> np.ndarray:
        time.sleep(pace.of(comm.rank))
        return flat_gradient(parameters, *next(batches))

    return next_gradient


def _curve(history: ServerHistory, data: Arrays, examples_per_update: int) -> Curve:
    train_x, _, test_x, test_y = data
    return Curve(
        [updates * examples_per_update / len(train_x) for updates in history.updates],
        history.seconds,
        [accuracy(unflat(snapshot), test_x, test_y) for snapshot in history.snapshots],
        measure_staleness(history.log),
    )
