"""Refused with: Each rank has the gradient of y whole, once. What would a sum over ranks make of it?"""

import torch.distributed.nn.functional as distributed
from torch.nn.functional import linear


def row_parallel_linear(x, weight, bias=None, group=None):
    y = distributed.all_reduce(linear(x, weight))
    return y if bias is None else y + bias
