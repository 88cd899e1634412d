"""Training steps with a divided state, on which `zero1_step` is tried, and what is left of the state after them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, MEAN, SQUARE = "the vector of parameters", "its part of the mean", "its part of the square"
STEPS, KEPT = "the number of steps", "the size of the state"


def parts_of(n: int, world_size: int) -> list[slice]:
    """Which numbers of a vector of n belong to each rank: equal parts, of which the last reach over the end."""
    length = -(-n // world_size)
    return [slice(min(n, rank * length), min(n, (rank + 1) * length)) for rank in range(world_size)]


def after_steps(
    function: Callable, weights: "Tensor", gradients: Sequence["Tensor"], settings: dict, seen: int
) -> dict:
    """Call the learner's function for one gradient after the other; return the weights, and what is kept of the state.

    The weights are read from another tensor on the same memory, as a network's parameters may be. `seen` is how many
    steps the state has seen. What it says of numbers behind the end of the weights is left out: it
    may be anything.
    """
    import torch.distributed as dist

    from course_utils.lessons.hybrid_and_sharded.zero1 import adam_shard

    weights = weights.clone() if weights.is_contiguous() else in_a_matrix(weights)
    held = weights[:]
    state = adam_shard(weights)
    state.steps = seen
    for gradient in gradients:
        function(weights, gradient, state, **settings)
    own = parts_of(len(weights), dist.get_world_size())[dist.get_rank()]
    kept = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors_in(state)}
    found = [held, state.mean[: own.stop - own.start], state.square[: own.stop - own.start]]
    found = [tensor.detach().clone() for tensor in found]
    return dict(zip((WEIGHTS, MEAN, SQUARE), found, strict=True)) | {
        STEPS: state.steps,
        KEPT: sum(kept.values()),
    }


def in_a_matrix(weights: "Tensor") -> "Tensor":
    """The same numbers as a column of a matrix: not one after the other in memory."""
    matrix = weights.new_zeros(len(weights), 2)
    matrix[:, 0] = weights
    return matrix[:, 0]


def tensors_in(value: Any) -> Iterator["Tensor"]:
    """All tensors that an object holds."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from tensors_in(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from tensors_in(entry)
    elif hasattr(value, "__dict__"):
        yield from tensors_in(vars(value))
