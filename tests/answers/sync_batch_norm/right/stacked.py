"""Sums in a table with one row for each kind, the count spread over a row of its own."""

import torch

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    x64 = x.to(torch.float64)
    sums = torch.cat([x64.sum(0), (x64**2).sum(0), x64.new_full((1,), x.shape[0])])
    total, total_of_squares, n = all_reduce_sum(sums).split([x.shape[1], x.shape[1], 1])
    mean = total / n
    variance = (total_of_squares - n * mean**2) / n
    scale = weight.double() * (variance + eps).rsqrt()
    y = x64 * scale + (bias.double() - mean * scale)
    return y.to(x.dtype), mean.to(x.dtype), variance.to(x.dtype)
