"""Refused with: How often does down_bias stand in the sum?"""

from torch.nn.functional import gelu, linear

from course_utils.lessons.model_parallel.differentiable_collectives import sum_over_ranks
from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    return sum_over_ranks(linear(hidden, down_weight, down_bias), group)
