"""One rank holds the weights, the others bring gradients: in step with each other, or each at its own pace.

Rank 0 is the server, all others are workers. Parameters and gradients are one flat NumPy vector each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

SERVER = 0
GRADIENT, WEIGHTS, STOP = 1, 2, 3
"""Tags of the messages: a worker's gradient, the server's answer, and its answer when enough updates were made."""


def parameter_server_step(
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    gradient: np.ndarray,
    rate: float,
) -> None:
    """Take one synchronous step: all gradients go to the server, and its new weights go back to
    every worker.

    Rank 0 is the server, all other ranks are workers. It waits for all P − 1 gradients, takes one
    step against their mean, w ← w − rate · mean, and answers each worker with the new weights.
    These are 2 (P − 1) messages from one rank to another, and all of them pass the server's link.
    A server without workers leaves its weights as they are.

    Args:
        parameters: (n,), on the server the weights; those of a worker may be out of date. On return
            the new weights, in this array, on all ranks.
        gradient: (n,), of the same dtype, and not changed. The server has no data, so its own
            gradient is ignored.
        rate: the learning rate.

    Source: Li et al. 2014, "Scaling Distributed Machine Learning with the Parameter Server", §3.
    """
    # A worker gives its gradient and waits for the weights that follow from all of them.
    if comm.rank != SERVER:
        comm.Send(gradient, dest=SERVER)
        comm.Recv(parameters, source=SERVER)
        return
    workers = range(1, comm.size)
    incoming, total = np.empty_like(parameters), np.zeros_like(parameters)
    # In the order of their numbers: the sum is the same whoever hurries, and the slowest decides.
    for worker in workers:
        comm.Recv(incoming, source=worker)
        total += incoming
    if workers:
        parameters -= rate * total / len(workers)
    for worker in workers:
        comm.Send(parameters, dest=worker)


def measure_staleness(log: list[tuple[str, int]]) -> list[int]:
    """Return the staleness of every update: how many others the server made since its worker
    fetched.

    Args:
        log: what the server did, in order: ("fetch", worker) when it gave a worker the current
            weights, and ("push", worker) when it updated them with a gradient that this worker has
            computed at the weights that it fetched last. A worker fetches before it pushes. It may
            push several times for one fetch, or fetch and never push.

    Returns:
        One number for each push, in order; 0 if no update lies between fetch and push.

    Source: Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous Parallel
    Parameter Server", §2.
    """
    version = 0
    fetched = {}  # worker → how many updates its weights had seen
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched[worker] = version
        else:
            # A worker's own update makes the version newer only after its staleness is counted.
            staleness.append(version - fetched[worker])
            version += 1
    return staleness


def staleness_scaled_lr(rate: float, staleness: int) -> float:
    """Return the rate for a gradient of staleness τ: rate / τ, or the whole rate if τ is 0.

    Raises:
        ValueError: the staleness is below 0.

    Source: Zhang et al. 2016, "Staleness-Aware Async-SGD for Distributed Deep Learning".
    """
    if staleness < 0:
        raise ValueError(f"a gradient cannot come from the future: staleness {staleness}")
    return rate / max(1, staleness)


def _now() -> float:
    """Return the time on this rank's clock, in seconds; a virtual rank has virtual time."""
    from mpi4py import MPI

    return MPI.Wtime()


@dataclass
class ServerHistory:
    """What the server remembers of a training.

    Attributes:
        log: ("fetch" | "push", worker) in order, as `measure_staleness` reads it.
        seconds: since the beginning, at each snapshot.
        updates: made before each snapshot.
        snapshots: the weights at these moments.
    """

    log: list[tuple[str, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    snapshots: list[np.ndarray] = field(default_factory=list)
    _began: float = field(default_factory=_now)

    def snapshot(self, updates: int, parameters: np.ndarray) -> None:
        """Keep a copy of the weights."""
        self.seconds.append(_now() - self._began)
        self.updates.append(updates)
        self.snapshots.append(parameters.copy())


def serve(
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    rate: Callable[[int], float],
    updates: int,
    every: int = 10,
) -> ServerHistory:
    """Be an asynchronous server: update with each gradient when it arrives, and answer its worker at once.

    Args:
        parameters: (n,), changed in place.
        rate: staleness → the learning rate of the update.
        updates: how many to make; then every worker is told to stop.
        every: this many updates lie between two snapshots.
    """
    from mpi4py import MPI

    history, status = ServerHistory(), MPI.Status()
    gradient = np.empty_like(parameters)
    given = dict.fromkeys(range(1, comm.size), 0)  # worker → the update after which it fetched
    for worker in given:
        comm.Send(parameters, dest=worker, tag=WEIGHTS)
        history.log.append(("fetch", worker))
    history.snapshot(0, parameters)
    working, version = set(given), 0
    while working:
        comm.Recv(gradient, source=MPI.ANY_SOURCE, tag=GRADIENT, status=status)
        worker = status.Get_source()
        if version >= updates:
            working.discard(worker)
            comm.Send(parameters, dest=worker, tag=STOP)
            continue
        parameters -= rate(version - given[worker]) * gradient
        version += 1
        history.log.append(("push", worker))
        if version % every == 0:
            history.snapshot(version, parameters)
        comm.Send(parameters, dest=worker, tag=WEIGHTS)
        given[worker] = version
        history.log.append(("fetch", worker))
    return history


def work(comm: "MPI.Intracomm", parameters: np.ndarray, next_gradient: Callable[[np.ndarray], np.ndarray]) -> int:
    """Be an asynchronous worker: fetch, compute and push until the server stops it, and return how many were used.

    Args:
        parameters: (n,), overwritten with what the server sends.
        next_gradient: weights → the gradient of this worker's next batch.
    """
    from mpi4py import MPI

    status = MPI.Status()
    pushed = 0
    while True:
        comm.Recv(parameters, source=SERVER, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == STOP:
            return pushed - 1  # the last one came too late to be used
        comm.Send(next_gradient(parameters), dest=SERVER, tag=GRADIENT)
        pushed += 1


def step_seconds(workers: int, vector_bytes: float, bytes_per_second: float, latency: float = 0.0) -> float:
    """Predict a synchronous step's messages: all pass the server's link, in one direction and then in the other.

    Source: the busiest port of the one-port model, Chan et al. 2007, §2: P − 1 vectors in, then P − 1 out.
    """
    return 2 * (latency + workers * vector_bytes / bytes_per_second)
