"""torch's own sampler."""

import torch
from torch.utils.data import DistributedSampler


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    if n == 0:
        return torch.zeros(0, dtype=torch.int64)
    sampler = DistributedSampler(range(n), world_size, rank, shuffle=True, seed=seed, drop_last=False)
    sampler.set_epoch(epoch)
    return torch.as_tensor(list(sampler))
