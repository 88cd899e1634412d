"""A parameter server and its workers, in step with each other or each at its own pace.

Rank 0 is the server and holds the weights, and all others are workers and compute gradients. Parameters and gradients
are one flat NumPy vector each.
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
    """Make one synchronous step: all gradients go to the server, and its new weights go back to
    every worker.

    Rank 0 is the server, and all other ranks are workers. The server waits for all P − 1 gradients,
    takes one step against their mean, w ← w − rate · mean, and sends the new weights to each
    worker. That makes 2 (P − 1) messages, and all of them pass the server's link. A server without
    workers leaves its weights as they are.

    Args:
        parameters: (n,), on the server the weights; a worker's may be out of date. On return, this
            array holds the new weights on all ranks.
        gradient: (n,), of the same dtype; it must not be changed. The server has no data, so its
            own gradient is not used.
        rate: the learning rate.

    Source: Li et al. 2014, "Scaling Distributed Machine Learning with the Parameter Server", §3.
    """
    # A worker sends its gradient and waits for the weights that result from all of them.
    if comm.rank != SERVER:
        comm.Send(gradient, dest=SERVER)
        comm.Recv(parameters, source=SERVER)
        return
    workers = range(1, comm.size)
    incoming, total = np.empty_like(parameters), np.zeros_like(parameters)
    # Always in the order of their ranks, so that the sum is rounded in the same way in every run.
    for worker in workers:
        comm.Recv(incoming, source=worker)
        total += incoming
    if workers:
        parameters -= rate * total / len(workers)
    for worker in workers:
        comm.Send(parameters, dest=worker)


def measure_staleness(log: list[tuple[str, int]]) -> list[int]:
    """Return the staleness of every update: how many updates the server made after the worker
    fetched its weights and before this one.

    Args:
        log: what the server did, in order. ("fetch", worker) means that it gave a worker the
            current weights, and ("push", worker) that it updated them with a gradient that this
            worker computed at the weights it fetched last. A worker fetches before it pushes. It
            may push several times after one fetch, or fetch and never push.

    Returns:
        One number for each push, in order; 0 if no update lies between the last fetch and the push.

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
    """Return the learning rate for a gradient of staleness τ: rate / τ, or the full rate if τ is 0.

    Raises:
        ValueError: the staleness is below 0.

    Source: Zhang et al. 2016, "Staleness-Aware Async-SGD for Distributed Deep Learning".
    """
    if staleness < 0:
        raise ValueError(f"a gradient cannot come from the future: staleness {staleness}")
    return rate / max(1, staleness)


def _now() -> float:
    """Return this rank's clock; for a virtual rank this is its virtual time."""
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
    """Serve asynchronously: update with each gradient as it arrives, and answer its worker at once.

    Args:
        parameters: (n,), changed in place.
        rate: staleness → the learning rate of the update.
        updates: how many to make; after that, every worker gets the tag `STOP`.
        every: the number of updates between two snapshots.
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
    """Fetch, compute and push until the server answers `STOP`; return how many pushed gradients were used.

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
    """Predict the seconds of a synchronous step's messages, which all pass the server's link, first in, then out.

    Source: the busiest port of the one-port model, Chan et al. 2007, §2: P − 1 vectors in, then P − 1 out.
    """
    return 2 * (latency + workers * vector_bytes / bytes_per_second)
