"""Refused with: What has a rank not got yet of the gradient of y?"""

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
        total = gradient.clone()
        dist.all_reduce(total, group=context.group)
        return total / dist.get_world_size(context.group), None


def row_parallel_linear(x, weight, bias=None, group=None):
    y = Summed.apply(linear(x, weight), group)
    return y if bias is None else y + bias
