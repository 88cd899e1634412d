"""Refused with: What is the root taken of, and where does eps stand?"""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, rank, n, length = dist.get_world_size(), dist.get_rank(), parameters.numel(), state.mean.numel()
    more = (0, size * length - n)
    mine, everything = torch.empty_like(state.mean), parameters.new_empty(size * length)

    dist.reduce_scatter_single(mine, pad(gradient, more))
    mine /= size

    state.steps += 1
    state.mean.lerp_(mine, 1 - betas[0])
    state.square.lerp_(mine**2, 1 - betas[1])
    mean = state.mean / (1 - betas[0] ** state.steps)
    square = state.square / (1 - betas[1] ** state.steps)
    own = pad(parameters, more)[rank * length : (rank + 1) * length]
    own = own - rate * mean / (square + eps).sqrt()

    dist.all_gather_single(everything, own)
    parameters.copy_(everything[:n])
