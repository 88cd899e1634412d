"""Refused with: Does each rank hold all outputs, or those of its own rows of weight?"""

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
    y = linear(Copied.apply(x, group), weight, bias)
    parts = [torch.empty_like(y) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, y.detach().contiguous(), group=group)
    parts[dist.get_rank(group)] = y
    return torch.cat(parts, dim=-1)
