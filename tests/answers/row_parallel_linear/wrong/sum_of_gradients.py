"""Refused with: Each rank has the gradient of y whole, once. What would a sum over ranks make of it?"""

from torch.nn.functional import linear

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def row_parallel_linear(x, weight, bias=None, group=None):
    y = all_reduce_sum(linear(x, weight))
    return y if bias is None else y + bias
