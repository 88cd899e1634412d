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
    """Do one forward and backward pass, and leave the whole batch's gradients in `parameter.grad`.

    Every rank takes its shard through `convolutions`. Rank 0 gathers the activations and the
    targets, in the order of the ranks, and goes forward and backward through `dense`. It scatters
    the gradients of the activations, and every rank goes backward through its convolutions. At
    last, the convolutions' gradients are added up over the ranks. They are not divided, because
    the loss is already the mean over the whole batch.

    Args:
        convolutions: equal on all ranks.
        dense: used on rank 0 only. No parameter of both has a gradient before the call.
        x, y: this rank's shard of the batch. All shards have the same length.
        loss: (output, target) of the whole batch → its mean loss.

    Returns:
        The loss as a float on rank 0, and 0.0 on all other ranks.

    Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural
        networks", §4.
    """
    ranks, is_owner = dist.get_world_size(), dist.get_rank() == OWNER
    # Each rank takes its shard forward.
    # Then rank 0 gets the activations and the targets of the whole batch.
    activations = convolutions(x)
    shards = [torch.empty_like(activations) for _ in range(ranks)] if is_owner else None
    targets = [torch.empty_like(y) for _ in range(ranks)] if is_owner else None
    dist.gather(activations.detach().contiguous(), shards, dst=OWNER)
    dist.gather(y, targets, dst=OWNER)

    # Rank 0 goes forward and backward through the dense layers alone,
    # and sends each rank the gradient of its own activations.
    gradient, value = torch.empty_like(activations, memory_format=torch.contiguous_format), 0.0
    gradients = None
    if is_owner:
        whole = torch.cat(shards).requires_grad_()
        total = loss(dense(whole), torch.cat(targets))
        total.backward()
        value, gradients = total.item(), list(whole.grad.chunk(ranks))
    dist.scatter(gradient, gradients, src=OWNER)

    # Each rank goes backward from the gradient that it has received.
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
