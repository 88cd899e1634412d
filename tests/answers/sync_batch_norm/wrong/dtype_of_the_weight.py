"""Refused with: Which dtype has y: that of x, or that of weight?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows = x.double()
    sums = torch.cat([rows.sum(0), rows.square().sum(0), torch.tensor([len(x)], dtype=torch.float64)])
    totals = all_reduce_sum(sums)
    mean, square = (totals[:-1] / totals[-1]).chunk(2)
    variance = square - mean.square()
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
