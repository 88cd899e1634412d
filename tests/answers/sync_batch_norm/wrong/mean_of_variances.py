"""Refused with: Do the ranks' means differ from each other?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows, features = x.double(), x.shape[1]
    n = torch.tensor([float(len(x))], dtype=torch.float64)
    own = rows.var(dim=0, correction=0) if len(x) else torch.zeros(features, dtype=torch.float64)
    totals = all_reduce_sum(torch.cat([rows.sum(0), own * n, n]))
    mean, variance = totals[:features] / totals[-1], totals[features:-1] / totals[-1]
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
