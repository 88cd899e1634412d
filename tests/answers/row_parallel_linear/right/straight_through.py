"""The sum of all ranks is added as a constant: its slope in this rank's term is 1."""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    term = linear(x, weight)
    total = term.detach().clone()
    dist.all_reduce(total, group=group)
    y = term + (total - term).detach()
    return y if bias is None else y + bias
