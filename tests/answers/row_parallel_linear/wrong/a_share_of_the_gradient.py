"""Refused with: What is the slope of y in one term of the sum?"""

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
        return gradient / dist.get_world_size(context.group), None


def row_parallel_linear(x, weight, bias=None, group=None):
    y = Summed.apply(linear(x, weight), group)
    return y if bias is None else y + bias
