"""Refused with: Where are the terms of the other ranks?"""

from torch.nn.functional import gelu, linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    return linear(gelu(linear(x, up_weight, up_bias)), down_weight, down_bias)
