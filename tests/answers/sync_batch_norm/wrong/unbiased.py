"""Refused with: Is it divided by N, or by N − 1?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows, features = x.double(), x.shape[1]
    n = torch.tensor([float(len(x))], dtype=torch.float64)
    totals = all_reduce_sum(torch.cat([rows.sum(0), rows.square().sum(0), n]))
    n = totals[-1]
    mean = totals[:features] / n
    variance = (totals[features:-1] / n - mean.square()) * n / (n - 1)
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
