"""Refused with: Every rank's hidden numbers ask for a change of x. Who adds up what they ask for?"""

from torch.nn.functional import gelu, linear

from course_utils.lessons.model_parallel.parallel_linear import row_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    return row_parallel_linear(gelu(linear(x, up_weight, up_bias)), down_weight, down_bias, group)
