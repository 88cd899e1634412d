"""Refused with: Which dtype have the tensors that you made yourself?"""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    rank, size, n = dist.get_rank(), dist.get_world_size(), len(parameters)
    length = -(-n // size)
    room = (0, length * size - n)
    mine = torch.empty(length)
    dist.reduce_scatter_single(mine, pad(gradient, room))
    mine /= size
    own = pad(parameters, room)[rank * length : (rank + 1) * length] + state.change(mine, rate, betas, eps)
    everything = torch.empty(length * size)
    dist.all_gather_single(everything, own)
    parameters.copy_(everything[:n])
