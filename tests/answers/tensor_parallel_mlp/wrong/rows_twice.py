"""Refused with: Are the ranks' hidden numbers terms of one sum, or different numbers?"""

import torch
from torch.nn.functional import gelu

from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear, row_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    total_bias = row_parallel_linear(up_bias, torch.eye(len(up_bias), dtype=x.dtype), None, group)
    hidden = gelu(row_parallel_linear(x, up_weight, total_bias, group))
    return row_parallel_linear(hidden, down_weight, down_bias, group)
