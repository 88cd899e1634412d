"""Refused with: Whose tensor is x: may this function change it?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    x = x.contiguous()
    dist.all_reduce(x, group=group)
    return linear(x, weight, bias)
