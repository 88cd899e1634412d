"""Refused with: Does a rank with more examples count for more?"""

import torch
import torch.distributed as dist

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def sync_batch_norm(x, weight, bias, eps=1e-5):
    rows = x.double()
    both = all_reduce_sum(torch.cat([rows.mean(0), rows.square().mean(0)])) / dist.get_world_size()
    mean, square = both.chunk(2)
    variance = square - mean.square()
    y = (rows - mean) / torch.sqrt(variance + eps)
    return y.to(x.dtype) * weight + bias, mean.to(x.dtype), variance.to(x.dtype)
