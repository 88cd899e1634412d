"""Each divides its own before the sum."""

import torch
import torch.distributed as dist


def average_gradients(model):
    world_size = dist.get_world_size()
    for parameter in filter(lambda p: p.requires_grad, model.parameters()):
        share = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad / world_size
        share = share.detach()
        dist.all_reduce(share, op=dist.ReduceOp.SUM)
        parameter.grad = share
