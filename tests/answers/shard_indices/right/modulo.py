"""Positions beyond the end begin again at 0."""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    steps = (n + world_size - 1) // world_size
    return torch.tensor([int(order[(rank + world_size * step) % n]) for step in range(steps)], dtype=torch.int64)
