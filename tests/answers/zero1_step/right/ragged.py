"""Only the numbers that are there are updated; what is behind the end stays zero."""

import torch
import torch.distributed as dist


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, rank, n = dist.get_world_size(), dist.get_rank(), parameters.numel()
    length = -(-n // size)
    first, behind = min(n, rank * length), min(n, (rank + 1) * length)
    filled = torch.cat([gradient, gradient.new_zeros(size * length - n)])
    mine = filled.new_empty(length)
    dist.reduce_scatter_single(mine, filled)
    change = state.change(mine.div_(size), rate, betas, eps)
    own = parameters.new_zeros(length)
    own[: behind - first] = parameters[first:behind] + change[: behind - first]
    dist.all_gather_single(filled, own)
    parameters[:] = filled[:n]
