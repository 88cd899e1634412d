"""torch's own differentiable all-reduce."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as together


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows = x.double()
    ones = torch.ones(len(x), 1, dtype=torch.float64)
    sums = torch.cat([ones, rows, rows * rows], dim=1).sum(dim=0)
    totals = together.all_reduce(sums, group=dist.group.WORLD)
    mean, square = (totals[1:] / totals[0]).chunk(2)
    variance = square - mean * mean
    y = (rows - mean) / (variance + eps) ** 0.5 * weight + bias
    return y.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)
