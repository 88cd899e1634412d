"""Refused with: How often does down_bias stand in the sum?"""

from torch.nn.functional import gelu, linear

from course_utils.tensor_parallel.collectives import sum_over_ranks
from course_utils.tensor_parallel.linear import column_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    return sum_over_ranks(linear(hidden, down_weight, down_bias), group)
