"""Refused with: What if there is no bias?"""

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
    return Summed.apply(linear(x, weight), group) + bias
