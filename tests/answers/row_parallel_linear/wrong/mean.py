"""Refused with: A sum of terms, or their mean?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, term, group):
        context.group = group
        total = term.clone()
        dist.all_reduce(total, group=group)
        return total / dist.get_world_size(group)

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def row_parallel_linear(x, weight, bias=None, group=None):
    y = Summed.apply(linear(x, weight), group)
    return y if bias is None else y + bias
