"""Without messages where there is one rank."""

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
        if dist.get_world_size(context.group) == 1:
            return gradient, None
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=context.group)
        return gradient, None


def column_parallel_linear(x, weight, bias=None, group=None):
    y = torch.einsum("...i,oi->...o", Copied.apply(x, group), weight)
    return y if bias is None else y + bias
