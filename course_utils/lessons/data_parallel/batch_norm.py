"""Batch norm over the examples of all ranks, not of each rank's own."""

import torch
from torch import nn

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise each feature of `x` with the mean and variance of *all* ranks' examples.

    The forward pass takes one all-reduce of 2·features + 1 numbers: the sums, the sums of squares,
    and the number of examples. The backward pass takes another one of the same size, through
    autograd. Because the number is sent, too, ranks may have different numbers of examples, or
    none.

    Args:
        x: (examples, features), this rank's share; features equal on all ranks.
        weight, bias: (features,), equal on all ranks.

    Returns:
        (y, mean, variance). y = (x − mean) / √(variance + eps) · weight + bias has the shape and
        dtype of `x`. mean and variance have the shape (features,) and the dtype of `x` or float64.
        They are taken over the N examples of all ranks; variance = Σ(x − mean)² / N.

    Source: Ioffe and Szegedy 2015, "Batch Normalization", algorithm 1; `torch.nn.SyncBatchNorm`.
    """
    features = x.shape[1]
    rows = x.double()  # the subtraction below loses many digits
    count = rows.new_tensor([len(x)])
    # All in one vector, so that one all-reduce is enough.
    totals = all_reduce_sum(torch.cat([rows.sum(dim=0), rows.square().sum(dim=0), count]))
    # Var[x] = E[x²] − E[x]²
    n = totals[-1]
    mean = totals[:features] / n
    variance = totals[features:-1] / n - mean.square()
    y = (rows - mean) / torch.sqrt(variance + eps) * weight + bias
    return y.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)


class SyncBatchNorm(nn.BatchNorm1d):
    """`nn.BatchNorm1d` whose statistics in training are those of the whole global batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(examples, features) in and out; one collective in training, none in evaluation.

        `running_var` gathers variances divided by N, where `nn.BatchNorm1d` divides by N − 1.
        """
        if not self.training:
            return super().forward(x)
        y, mean, variance = sync_batch_norm(x, self.weight, self.bias, self.eps)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance, self.momentum)
        return y
