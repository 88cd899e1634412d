"""Refused with: Every rank's outputs ask for a change of x. Who adds up what they ask for?"""

from torch.nn.functional import linear


def column_parallel_linear(x, weight, bias=None, group=None):
    return linear(x, weight, bias)
