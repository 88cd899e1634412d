"""What is gathered are the changes, not the parameters."""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


@torch.no_grad()
def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, n = dist.get_world_size(), parameters.numel()
    mine = torch.empty_like(state.mean)
    filled = pad(gradient, (0, size * mine.numel() - n))
    dist.reduce_scatter_single(mine, filled, op=dist.ReduceOp.SUM)
    changes = torch.empty_like(filled)
    dist.all_gather_single(changes, state.change(mine / size, rate, betas, eps))
    parameters += changes[:n]
