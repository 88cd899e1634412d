"""Refused with: After a step, is down_bias still the same on all ranks?"""

import torch.distributed as dist
from torch.nn.functional import gelu, linear

from course_utils.lessons.model_parallel.differentiable_collectives import sum_over_ranks
from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    part = down_bias / dist.get_world_size(group)
    return sum_over_ranks(linear(hidden, down_weight, part), group)
