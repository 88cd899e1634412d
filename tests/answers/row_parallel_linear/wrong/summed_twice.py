"""Refused with: How many sums over ranks does y need?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, term, group):
        context.group = group
        total = term.clone()
        for half in total.chunk(2):
            dist.all_reduce(half, group=group)
        return total

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def row_parallel_linear(x, weight, bias=None, group=None):
    y = Summed.apply(linear(x, weight), group)
    return y if bias is None else y + bias
