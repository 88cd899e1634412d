"""Refused with: How much of the sum of all gradients does a rank need?"""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, rank, n, length = dist.get_world_size(), dist.get_rank(), parameters.numel(), state.mean.numel()
    more = (0, size * length - n)
    mine, everything = torch.empty_like(state.mean), parameters.new_empty(size * length)

    total = pad(gradient, more)
    dist.all_reduce(total)
    mine = total[rank * length : (rank + 1) * length] / size

    own = pad(parameters, more)[rank * length : (rank + 1) * length] + state.change(mine, rate, betas, eps)

    dist.all_gather_single(everything, own)
    parameters.copy_(everything[:n])
