"""All-reduce changes the term behind autograd's back: just what is wanted, as its slope in the sum is 1."""

import torch.distributed as dist
from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    y = linear(x, weight)
    dist.all_reduce(y, group=group)
    return y if bias is None else y + bias
