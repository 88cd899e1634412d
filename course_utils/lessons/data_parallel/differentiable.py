"""Messages that the backward pass can go through.

`dist.all_reduce` changes a tensor behind autograd's back, so a loss computed from the result has no gradient
with respect to what the ranks put in. Here a move between ranks is a node of the graph, with a backward of its own.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist

Group = dist.ProcessGroup | None
"""Ranks that share a layer; None for all."""
Move = Callable[[torch.Tensor], torch.Tensor]


class _Moved(torch.autograd.Function):
    """One move forward, another one backward."""

    @staticmethod
    def forward(context, x: torch.Tensor, there: Move, back: Move) -> torch.Tensor:
        context.back = back
        return there(x)

    @staticmethod
    def backward(context, gradient: torch.Tensor):
        return context.back(gradient), None, None


def moved(x: torch.Tensor, forward: Move, backward: Move) -> torch.Tensor:
    """`forward(x)`, and the backward pass applies `backward` to the gradient that arrives.

    Nobody checks that the two belong together: whoever pairs them says what the ranks do with the result.
    """
    return _Moved.apply(x, forward, backward)


def all_reduced(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """The sum of all ranks' `x`, in a new tensor."""
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def all_reduce_sum(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' `tensor`, on every rank, differentiable.

    Forward: one all-reduce of `tensor`. Backward: one all-reduce of the gradient, of the same size. Every rank's loss
    depends on the sum, and the sum on this rank's tensor with slope 1: the gradient is that of the sum of all ranks'
    losses.

    Args:
        tensor: same shape and dtype on all ranks; not changed.
    """
    return moved(tensor, all_reduced, all_reduced)
