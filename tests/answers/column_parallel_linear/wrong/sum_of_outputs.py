"""Refused with: Are the ranks' outputs terms of one sum, or different outputs?"""

from torch.nn.functional import linear

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def column_parallel_linear(x, weight, bias=None, group=None):
    return all_reduce_sum(linear(x, weight, bias))
