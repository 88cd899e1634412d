"""One sum, then torch's own batch norm in evaluation mode with the statistics of all."""

import torch
from torch.nn import functional

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows, features = x.double(), x.shape[1]
    mine = torch.zeros(2 * features + 1, dtype=torch.float64)
    mine[0] = len(x)
    parts = torch.cat([mine[:1], rows.sum(0), (rows * rows).sum(0)])
    n, first, second = all_reduce_sum(parts).split([1, features, features])
    mean, variance = first / n, second / n - (first / n) ** 2
    y = (rows - mean) * torch.rsqrt(variance + eps)
    y = functional.linear(y, torch.diag(weight.double()), bias.double())
    return y.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)
