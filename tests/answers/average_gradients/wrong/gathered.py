"""Refused with: Must all gradients pass through one rank?"""

import torch
import torch.distributed as dist


def average_gradients(model):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        own = own.detach()
        everybodys = [torch.empty_like(own) for _ in range(world_size)] if rank == 0 else None
        dist.gather(own, everybodys, dst=0)
        dist.scatter(own, [torch.stack(everybodys).mean(dim=0)] * world_size if rank == 0 else None, src=0)
        parameter.grad = own
