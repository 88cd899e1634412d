"""Without messages where there is one rank; bias as a broadcast row."""

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
    term = torch.einsum("...i,oi->...o", x, weight)
    y = Summed.apply(term, group) if dist.get_world_size(group) > 1 else term
    if bias is None:
        return y
    return y + bias.expand_as(y)
