"""Refused with: What stands between the two layers?"""

from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear, row_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = column_parallel_linear(x, up_weight, up_bias, group)
    return row_parallel_linear(hidden, down_weight, down_bias, group)
