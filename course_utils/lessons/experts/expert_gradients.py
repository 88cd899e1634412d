"""Which ranks add up which gradients: all ranks what all have, and an expert's only the ranks that have this expert."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import nn

from course_utils.lessons.data_parallel.differentiable import Group


def expert_gradients(
    shared: Iterable[nn.Parameter],
    own: Iterable[nn.Parameter],
    data: Group = None,
) -> None:
    """Turn each `parameter.grad` into the gradient of the mean loss over all ranks.

    Every rank ran its backward pass from the mean loss of its own tokens, of which all ranks have
    equally many. The gradient of what every rank has (attention, norms, the gate) comes from these
    tokens alone, so it is summed over all ranks. An expert has already got the gradients of all
    ranks that sent it tokens, in the backward pass of combine, so its gradient is summed only over
    the ranks with the same expert. Both are divided by the number of *all* ranks.

    Args:
        shared: parameters that all ranks have, in the same order.
        own: parameters of this rank's experts. A gradient of None, of an expert that got no
            tokens, counts as zeros.
        data: the group of the ranks with the same experts.

    Source: Rajbhandari et al. 2022, "DeepSpeed-MoE" (expert parallelism together with data
    parallelism).
    """
    ranks = dist.get_world_size()
    for parameters, group in ((list(shared), None), (list(own), data)):
        if not parameters:
            continue
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in parameters
        ]
        # In one vector: one all-reduce, not one for each parameter (lesson 7).
        total = torch.cat([gradient.detach().flatten() for gradient in gradients])
        dist.all_reduce(total, group=group)
        parts = (total / ranks).split([gradient.numel() for gradient in gradients])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).clone()
