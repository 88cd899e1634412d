"""Refused with: Could all the sums travel together?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows = x.double()
    n = all_reduce_sum(torch.tensor([float(len(x))], dtype=torch.float64))
    mean = all_reduce_sum(rows.sum(0)) / n
    variance = all_reduce_sum((rows - mean).square().sum(0)) / n
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
