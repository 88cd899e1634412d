"""Refused with: After a step, is bias still the same on all ranks?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, term, group):
        context.group = group
        total = term.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def row_parallel_linear(x, weight, bias=None, group=None):
    part = None if bias is None else bias / dist.get_world_size(group)
    return Summed.apply(linear(x, weight, part), group)
