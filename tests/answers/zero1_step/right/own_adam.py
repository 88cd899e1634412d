"""Adam by hand, torch's older names."""

import torch
import torch.distributed as dist


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, rank, n = dist.get_world_size(), dist.get_rank(), len(parameters)
    length = len(state.mean)
    whole = torch.zeros(size * length, dtype=gradient.dtype)
    whole[:n] = gradient
    mine = torch.empty(length, dtype=gradient.dtype)
    dist.reduce_scatter_tensor(mine, whole)
    mine = mine / size

    state.steps = state.steps + 1
    state.mean = betas[0] * state.mean + (1 - betas[0]) * mine
    state.square = betas[1] * state.square + (1 - betas[1]) * mine * mine
    mean = state.mean / (1 - betas[0] ** state.steps)
    square = state.square / (1 - betas[1] ** state.steps)

    whole[:n] = parameters
    own = whole[rank * length : (rank + 1) * length] - rate * mean / (torch.sqrt(square) + eps)
    dist.all_gather_into_tensor(whole, own)
    parameters[:] = whole[:n]
