"""Refused with: How many digits are left when two large and nearly equal numbers are subtracted?"""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    features = x.shape[1]
    n = torch.tensor([float(len(x))], dtype=x.dtype)
    totals = all_reduce_sum(torch.cat([x.sum(0), x.square().sum(0), n]))
    mean = totals[:features] / totals[-1]
    variance = totals[features:-1] / totals[-1] - mean.square()
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias, mean, variance
