"""Refused with: Must every rank see each term, or only the sum?"""

import torch
import torch.distributed as dist
from torch.nn.functional import linear


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(context, term, group):
        context.group = group
        terms = [torch.empty_like(term) for _ in range(dist.get_world_size(group))]
        dist.all_gather(terms, term.contiguous(), group=group)
        return sum(terms)

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def row_parallel_linear(x, weight, bias=None, group=None):
    y = Summed.apply(linear(x, weight), group)
    return y if bias is None else y + bias
