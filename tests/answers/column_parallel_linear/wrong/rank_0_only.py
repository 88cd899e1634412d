"""Refused with: Does every rank make the same calls?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(context, x, group):
        context.group = group
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        total = gradient.clone()
        if dist.get_rank() == 0:
            dist.all_reduce(total, group=context.group)
        return total, None


def column_parallel_linear(x, weight, bias=None, group=None):
    return linear(Copied.apply(x, group), weight, bias)
