"""Batch norm whose examples lie on several ranks: the averages are those of all of them."""

import copy

import torch
import torch.distributed as dist
from torch import nn


class _Normalised(torch.autograd.Function):
    """Normalises with averages over a group; 2·channels + 1 numbers are summed forward, 2·channels backward."""

    @staticmethod
    def forward(context, x: torch.Tensor, eps: float, group: dist.ProcessGroup | None):
        places = [dim for dim in range(x.dim()) if dim != 1]
        rows = x.double()  # a square loses half of its digits in the subtraction below
        count = rows.new_tensor([x.numel() // x.shape[1]])
        totals = torch.cat([rows.sum(places), rows.square().sum(places), count])
        if group is not None:
            dist.all_reduce(totals, group=group)
        n, channels = totals[-1], x.shape[1]
        mean = totals[:channels] / n
        variance = totals[channels:-1] / n - mean.square()
        slope = torch.rsqrt(variance + eps)
        y = ((rows - _over(mean, x)) * _over(slope, x)).to(x.dtype)
        context.save_for_backward(y, slope, n)
        context.group, context.places = group, places
        context.mark_non_differentiable(mean, variance, n)
        return y, mean, variance, n

    @staticmethod
    def backward(context, gradient: torch.Tensor, *_):
        y, slope, n = context.saved_tensors
        sums = torch.cat([gradient.sum(context.places), (gradient * y).sum(context.places)])
        if context.group is not None:
            dist.all_reduce(sums, group=context.group)
        first, second = (_over(total / n, y).to(y.dtype) for total in sums.chunk(2))
        return (gradient - first - y * second) * _over(slope, y).to(y.dtype), None, None


def _over(channels: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """One number for each channel, so that it can be combined with x."""
    return channels.view(-1, *(1,) * (x.dim() - 2))


class BatchNormOverRanks(nn.Module):
    """Batch norm over the examples of all ranks of a group, with the weights and running averages of a given one.

    Without a group it computes the same, and sends nothing.

    `nn.SyncBatchNorm` does the same, on GPUs only.

    Source: Ioffe and Szegedy 2015, "Batch Normalization", algorithm 1.
    """

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d, group: dist.ProcessGroup | None) -> None:
        super().__init__()
        self.norm, self.group = norm, group

    @classmethod
    def instead_of(cls, layer: nn.Module, group: dist.ProcessGroup) -> nn.Module:
        """A batch norm over the group in the place of a batch norm; any other layer as it is."""
        return cls(copy.copy(layer), group) if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)) else layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(examples, channels, …) in and out; one all-reduce in training, none in evaluation."""
        norm = self.norm
        if not norm.training and norm.running_mean is not None:
            return norm(x)
        y, mean, variance, n = _Normalised.apply(x, norm.eps, self.group)
        if norm.training and norm.running_mean is not None:
            norm.num_batches_tracked += 1
            share = norm.momentum or 1 / norm.num_batches_tracked.item()
            norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), share)
            norm.running_var.lerp_((variance * n / (n - 1)).to(norm.running_var.dtype), share)
        return y if norm.weight is None else y * _over(norm.weight, y) + _over(norm.bias, y)
