"""Refused with: Does a rank without examples take part?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows, features = x.double(), x.shape[1]
    n = torch.tensor([float(len(x))], dtype=torch.float64)
    totals = torch.cat([rows.sum(0), rows.square().sum(0), n])
    if len(x) > 0:
        totals = all_reduce_sum(totals)
    mean = totals[:features] / totals[-1]
    variance = totals[features:-1] / totals[-1] - mean.square()
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
