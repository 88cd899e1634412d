"""Refused with: Each rank has the gradient of y whole, once. What would a sum over ranks make of it?"""

from torch.nn.functional import gelu, linear

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum
from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    return all_reduce_sum(linear(hidden, down_weight)) + down_bias
