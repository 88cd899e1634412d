"""Refused with: One all-reduce each way is enough: which of yours does nothing?"""

import torch.distributed as dist
from torch.nn.functional import gelu

from course_utils.lessons.model_parallel.parallel_linear import column_parallel_linear, row_parallel_linear


def tensor_parallel_mlp(x, up_weight, up_bias, down_weight, down_bias, group=None):
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    y = row_parallel_linear(hidden, down_weight, down_bias, group)
    total = y.detach().clone()
    dist.all_reduce(total, group=group)
    return y + (total / dist.get_world_size(group) - y).detach()
