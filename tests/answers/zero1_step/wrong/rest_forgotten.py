"""Refused with: How long is the part of each rank where P does not divide n?"""

import torch
import torch.distributed as dist


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    rank, length = dist.get_rank(), len(parameters) // dist.get_world_size()
    mine, everything = gradient.new_empty(length), gradient.new_empty(len(parameters))
    dist.reduce_scatter_single(mine, gradient.contiguous())
    mine /= dist.get_world_size()
    own = parameters[rank * length : (rank + 1) * length] + state.change(mine, rate, betas, eps)
    dist.all_gather_single(everything, own)
    parameters.copy_(everything)
