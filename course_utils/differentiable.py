"""Collectives that the backward pass can go through.

`dist.all_reduce` changes a tensor behind autograd's back, so a loss computed from the result has no gradient
with respect to what the ranks put in. Here the sum is a node of the graph, with a backward of its own.
"""

import torch
import torch.distributed as dist


class _AllReduceSum(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor: torch.Tensor) -> torch.Tensor:
        total = tensor.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context, total_gradient: torch.Tensor) -> torch.Tensor:
        # Every rank's loss depends on the total, and the total on this rank's tensor with slope 1:
        # the gradient here is the sum of what all ranks send back.
        gradient = total_gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return gradient


def all_reduce_sum(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' `tensor`, on every rank, differentiable.

    Forward: one all-reduce of `tensor`. Backward: one all-reduce of the gradient, of the same size.
    The gradient is that of the sum of all ranks' losses.

    Args:
        tensor: same shape and dtype on all ranks; not changed.
    """
    return _AllReduceSum.apply(tensor)
