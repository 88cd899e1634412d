"""Refused with: Can the gradient find its way back to x?"""

from torch.nn.functional import linear


def column_parallel_linear(x, weight, bias=None, group=None):
    return linear(x.detach(), weight, bias)
