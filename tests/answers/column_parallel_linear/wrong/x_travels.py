"""Refused with: Does every rank have all of x already?"""

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
        dist.all_reduce(total, group=context.group)
        return total, None


def column_parallel_linear(x, weight, bias=None, group=None):
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    same = x + (total / dist.get_world_size(group) - x).detach()
    return linear(Copied.apply(same, group), weight, bias)
