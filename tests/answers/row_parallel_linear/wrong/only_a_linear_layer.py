"""Refused with: Where are the terms of the other ranks?"""

from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    return linear(x, weight, bias)
