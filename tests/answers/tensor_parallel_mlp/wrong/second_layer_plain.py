"""Refused with: Where are the terms of the other ranks?"""

from torch.nn.functional import gelu, linear

from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    return linear(gelu(column_parallel_linear(x, up_weight, up_bias, group)), down_weight, down_bias)
