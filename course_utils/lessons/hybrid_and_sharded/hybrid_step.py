"""Two kinds of parallelism in one network: convolutions cut by examples, fully connected layers on one rank.

Convolutions have few weights and many activations, fully connected layers the reverse. So the weights of the first are
replicated, and the activations of the second are brought together.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError

OWNER = 0
"""The rank that has the fully connected layers."""


def hybrid_step(
    convolutions: nn.Module,
    dense: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> float:
    """One forward and backward pass; the whole batch's gradients lie in `parameter.grad`.

    Forward, the activations of all shards are gathered on rank 0, which goes on alone.
    Backward, it scatters their gradients; the convolutions' gradients are then summed over the
    ranks. Summed, not averaged: the loss is already the mean over the whole batch, and each
    rank's gradient is its shard's share of it.

    Args:
        convolutions: equal on all ranks.
        dense: used on rank 0 only.
        x, y: this rank's shard of the batch; shards are equally long.
        loss: (output, target) of the whole batch → its mean loss.

    Returns:
        The loss on rank 0, 0.0 elsewhere.

    Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural
        networks", §4.
    """
    ranks, is_owner = dist.get_world_size(), dist.get_rank() == OWNER
    # Forward, data-parallel: each rank its shard.
    # Then rank 0 has the activations of the whole batch.
    activations = convolutions(x)
    shards = [torch.empty_like(activations) for _ in range(ranks)] if is_owner else None
    targets = [torch.empty_like(y) for _ in range(ranks)] if is_owner else None
    dist.gather(activations.detach().contiguous(), shards, dst=OWNER)
    dist.gather(y, targets, dst=OWNER)

    # Rank 0 alone: forward and backward through the dense layers,
    # then each shard's gradient goes home.
    gradient, value = torch.empty_like(activations, memory_format=torch.contiguous_format), 0.0
    gradients = None
    if is_owner:
        whole = torch.cat(shards).requires_grad_()
        total = loss(dense(whole), torch.cat(targets))
        total.backward()
        value, gradients = total.item(), list(whole.grad.chunk(ranks))
    dist.scatter(gradient, gradients, src=OWNER)

    # Backward, data-parallel again, from the gradient that came.
    activations.backward(gradient)
    for parameter in convolutions.parameters():
        dist.all_reduce(parameter.grad)
    return value


def equal_shards(examples: int, ranks: int) -> None:
    """Reject a batch that cannot be dealt out evenly.

    Raises:
        CourseError: the batch is not a multiple of the number of ranks.
    """
    if examples % ranks:
        raise CourseError(
            f"{examples} examples cannot be dealt out evenly to {ranks} ranks. Take a multiple of {ranks}."
        )


def drifting_gradients(convolutions: nn.Module, dense: nn.Module) -> None:
    """What the report on parallel strategies does instead, after each rank's own backward pass through both parts.

    The convolutions' gradients are averaged. Those of the fully connected layers are only divided: every rank has these
    layers, with gradients of its own examples, and nobody adds them. So each rank trains layers of its own, with steps
    P times too short.

    Source: its appendix, `average_gradients`.
    """
    ranks = dist.get_world_size()
    for parameter in convolutions.parameters():
        dist.all_reduce(parameter.grad)
    for parameter in (*convolutions.parameters(), *dense.parameters()):
        parameter.grad /= ranks
