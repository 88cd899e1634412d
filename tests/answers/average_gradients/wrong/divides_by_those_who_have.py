"""Refused with: By how many is it divided, and did all put something in?"""

import torch
import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        have = torch.ones(1) if parameter.grad is not None else torch.zeros(1)
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        both = torch.cat([parameter.grad.reshape(-1), have.to(parameter.grad.dtype)])
        dist.all_reduce(both)
        parameter.grad = (both[:-1] / both[-1]).reshape(parameter.shape)
