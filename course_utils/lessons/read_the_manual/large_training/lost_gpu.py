"""A training on a mesh goes on although GPUs have died: who computes, which micro-batches, and who heals whom."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from course_utils.errors import CourseError


class Recovery(NamedTuple):
    """How a training goes on.

    Attributes:
        stopped: the ranks that cannot compute until the dead GPUs have been replaced, in rising order.
        batches: replica → the numbers of the micro-batches that it takes in each step now.
        weights: replica → the factor of its mean gradient in the sum over all replicas.
        heals: stopped rank → the rank from which its replacement receives the training state.
    """

    stopped: list[int]
    batches: dict[int, list[int]]
    weights: dict[int, float]
    heals: dict[int, int]


def go_on_without(sizes: Mapping[str, int], dead: Sequence[int], micro_batches: int) -> Recovery:
    """Return how a training goes on after GPUs have died.

    Ranks are numbered along the last axis first, as in lesson 11's `mesh_groups`. A replica
    consists of all ranks with the same coordinate along "data", and needs every one of them.

    Args:
        sizes: ranks along each axis, {"data": 4, "pipeline": 2, "tensor": 2}, "data" among them.
        dead: the ranks whose GPUs have died, at least one.
        micro_batches: of all replicas together in one step, numbered from 0.

    Returns:
        Replicas are named by their coordinate along "data". Each micro-batch is taken once, and no
        replica takes two more than another. The weighted sum of the replicas' mean gradients is
        the mean gradient of all micro-batches. A replacement is healed from a rank that has the
        same part of the model.

    Raises:
        CourseError: a dead rank is not on the mesh, or no replica is complete any more.
    """
    coordinates = list(product(*map(range, sizes.values())))
    if not all(0 <= rank < len(coordinates) for rank in dead):
        raise CourseError(f"The mesh has the ranks 0 to {len(coordinates) - 1}.")
    axis = list(sizes).index("data")
    replicas = [place[axis] for place in coordinates]
    lost = {replicas[rank] for rank in dead}
    complete = [replica for replica in range(sizes["data"]) if replica not in lost]
    if not complete:
        raise CourseError("Every replica has lost a GPU. Load a checkpoint.")
    stopped = [rank for rank, replica in enumerate(replicas) if replica in lost]
    batches = {replica: list(range(k, micro_batches, len(complete))) for k, replica in enumerate(complete)}
    weights = {replica: len(numbers) / micro_batches for replica, numbers in batches.items()}
    heals = {}
    for rank in stopped:
        # Lost replicas take turns, so that one peer does not have to heal all of them.
        source = list(coordinates[rank])
        source[axis] = complete[source[axis] % len(complete)]
        heals[rank] = coordinates.index(tuple(source))
    return Recovery(stopped, batches, weights, heals)
