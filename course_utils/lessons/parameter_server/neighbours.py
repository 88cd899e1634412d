"""D-PSGD: no rank knows the mean. Each averages with its two neighbours on a ring, and takes a step of its own.

Parameters are one flat NumPy vector.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.parameter_server.flat_network import first_weights, flat_gradient, own_batches
from course_utils.lessons.sgd.digits_network import Arrays

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def neighbours_step(comm: "MPI.Intracomm", parameters: np.ndarray, gradient: np.ndarray, rate: float) -> None:
    """Take one step of D-PSGD: the mean with both neighbours, minus the rate times this rank's own gradient.

    wᵣ ← (wᵣ₋₁ + wᵣ + wᵣ₊₁) / 3 − rate · gᵣ. Each rank sends its weights to the left and to the right: two vectors,
    whatever P, in two rounds.

    Args:
        parameters: (n,), this rank's own; changed in place. The ranks' differ.
        gradient: (n,), at these parameters, before they are averaged.
        rate: the learning rate.

    Raises:
        ValueError: there are fewer than three ranks, so that both neighbours would be the same rank.

    Source: Lian et al. 2017, "Can Decentralized Algorithms Outperform Centralized Algorithms?", algorithm 1.
    """
    if comm.size < 3:
        raise ValueError(f"a ring with two neighbours takes 3 ranks at least, not {comm.size}")
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    from_left, from_right = np.empty_like(parameters), np.empty_like(parameters)
    comm.Sendrecv(parameters, dest=right, recvbuf=from_left, source=left)
    comm.Sendrecv(parameters, dest=left, recvbuf=from_right, source=right)
    parameters[:] = (from_left + parameters + from_right) / 3 - rate * gradient


def shrinking(world_size: int) -> float:
    """Return which share of the ranks' distance from their mean is left after a step without gradients.

    On a ring, a step multiplies the wave cos(2πkr / P) over the ranks r by (1 + 2 cos(2πk / P)) / 3, because its two
    neighbours add up to 2 cos(2πk / P) times the rank's own value. The wave with k = 0 is the mean, which stays as it
    is. Of all others, the one that shrinks least decides.

    Source: Lian et al. 2017, assumption 1.3, the spectral gap: the factors are the eigenvalues of the mixing matrix.
    """
    return max(abs(1 + 2 * math.cos(2 * math.pi * k / world_size)) / 3 for k in range(1, world_size))


def consensus_distance(parameters: Sequence[np.ndarray]) -> float:
    """Return how far the ranks' weights differ: the root of the mean squared distance from their mean.

    Args:
        parameters: of each rank, (n,).
    """
    each = np.asarray(parameters)
    return math.sqrt(((each - each.mean(axis=0)) ** 2).sum(axis=1).mean())


def train_among_neighbours(
    comm: "MPI.Intracomm",
    data: Arrays,
    steps: int,
    method: str,
    *,
    only_average: int = 0,
    batch_size: int = 16,
    rate: float = 0.3,
) -> list[np.ndarray]:
    """Train the digits, each rank on every P-th image; return its weights before the first step and after each.

    Args:
        method: "neighbours" for `neighbours_step`, "all-reduce" for the mean of all gradients by lesson 5's ring.
        only_average: how many steps without gradients follow at the end.
    """
    batches = own_batches(data, comm.rank, comm.size, batch_size, comm.rank)
    parameters = first_weights(0)
    kept = [parameters.copy()]
    for step in range(steps + only_average):
        gradient = flat_gradient(parameters, *next(batches)) * (step < steps)
        if method == "neighbours":
            neighbours_step(comm, parameters, gradient, rate)
        else:
            ring_allreduce(comm, gradient)
            parameters -= rate * gradient / comm.size
        kept.append(parameters.copy())
    return kept
