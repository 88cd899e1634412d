"""All sums under way at once."""

import torch
import torch.distributed as dist


def average_gradients(model):
    works = []
    for parameter in reversed(list(model.parameters())):
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        works.append((parameter, dist.all_reduce(parameter.grad, async_op=True)))
    for parameter, work in works:
        work.wait()
        parameter.grad.div_(dist.get_world_size())
