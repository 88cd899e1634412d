"""Refused with: The sum of what all ranks ask for, or the mean?"""

import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.lessons.data_parallel.differentiable import all_reduce_sum


def column_parallel_linear(x, weight, bias=None, group=None):
    return linear(all_reduce_sum(x) / dist.get_world_size(), weight, bias)
