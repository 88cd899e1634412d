"""Refused with: Can the gradient find its way back to x?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    y = linear(x, weight).detach()
    dist.all_reduce(y, group=group)
    return y if bias is None else y + bias
