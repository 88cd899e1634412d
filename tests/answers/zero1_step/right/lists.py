"""Lists of equal parts."""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


def zero1_step(parameters, gradient, state, rate=0.001, betas=(0.9, 0.999), eps=1e-8):
    size, n, length = dist.get_world_size(), parameters.numel(), state.mean.numel()
    missing = size * length - n
    parts = list(pad(gradient / size, (0, missing)).split(length))
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter(mine, parts)
    own = pad(parameters, (0, missing)).split(length)[dist.get_rank()] + state.change(mine, rate, betas, eps)
    everybodys = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(everybodys, own)
    parameters.copy_(torch.cat(everybodys)[:n])
