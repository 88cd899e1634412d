"""Refused with: Must every rank see each other rank's part of the gradient, or only the sum?"""

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
        parts = [torch.empty_like(gradient) for _ in range(dist.get_world_size(context.group))]
        dist.all_gather(parts, gradient.contiguous(), group=context.group)
        return sum(parts), None


def column_parallel_linear(x, weight, bias=None, group=None):
    return linear(Copied.apply(x, group), weight, bias)
