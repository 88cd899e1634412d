"""Local SGD: every rank trains by itself for a while, and then the ranks average their weights.

Among clinics that may not share their data this is federated averaging. Parameters are one flat NumPy vector.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def local_sgd_round(
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    gradient: Callable[[np.ndarray, Any], np.ndarray],
    batches: Iterable[Any],
    rate: float,
) -> None:
    """Make one round of local SGD: a step for each of this rank's batches, then the mean of all
    ranks' weights.

    The steps need no messages. At the end there is one all-reduce of the weights, so each rank
    contributes n numbers of their dtype once, whatever the number of batches. Ranks may have
    different numbers of batches, or none, and all ranks count equally.

    Args:
        parameters: (n,), equal on all ranks before and after; changed in place.
        gradient: (weights, batch) → the gradient, (n,), which may be part of the batch. Neither the
            gradient nor the batch may be changed.
        batches: this rank's batches, in order.
        rate: the learning rate of the local steps.

    Source: Stich 2019, "Local SGD Converges Fast and Communicates Little", algorithm 1.
    """
    # First every rank takes its steps, without a message.
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    # Then all of them continue from the mean.
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size


def federated_average(comm: "MPI.Intracomm", parameters: np.ndarray, examples: int) -> None:
    """Replace the weights by their mean over all ranks, in which each rank counts by its number of
    examples.

    w ← Σ nᵣ wᵣ / Σ nᵣ, with one all-reduce of n + 1 numbers, which may be in float64. The number of
    examples travels at the end of the weighted vector, and a rank receives nothing but the sums. If
    no rank has an example, the weights stay as they are.

    Args:
        parameters: (n,), float32 or float64: this rank's weights after its local training; changed
            in place.
        examples: nᵣ, how many this rank has trained with, 0 or more.

    Source: McMahan et al. 2017, "Communication-Efficient Learning of Deep Networks from
    Decentralized Data", algorithm 1.
    """
    # The number of examples travels with the weights: one all-reduce gives both sums.
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    if total[-1] > 0:
        parameters[:] = total[:-1] / total[-1]


def skewed_shards(labels: np.ndarray, clinics: int, skew: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Divide examples among clinics that see different things: for each label, the shares are drawn from a Dirichlet.

    Args:
        labels: (n,), the class of each example.
        skew: above 0; 100 gives clinics that are nearly alike, 0.1 clinics that know a few labels each.

    Returns:
        The indices of each clinic's examples, in random order; together every example once.

    Source: Hsu, Qi, Brown 2019, "Measuring the Effects of Non-Identical Data Distribution", §3.
    """
    shards: list[list[np.ndarray]] = [[] for _ in range(clinics)]
    for label in np.unique(labels):
        mine = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet([skew] * clinics)
        cuts = np.round(np.cumsum(shares)[:-1] * len(mine)).astype(int)
        for shard, piece in zip(shards, np.split(mine, cuts), strict=True):
            shard.append(piece)
    return [rng.permutation(np.concatenate(shard)) for shard in shards]
