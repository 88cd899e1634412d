"""Refused with: Whose gradient is summed: that of this layer, or all that comes back to x from anywhere?"""

import torch.distributed as dist
from torch.nn.functional import linear


def column_parallel_linear(x, weight, bias=None, group=None):
    def sum_of_all(gradient):
        total = gradient.clone().contiguous()
        dist.all_reduce(total, group=group)
        return total

    x.register_hook(sum_of_all)
    return linear(x, weight, bias)
