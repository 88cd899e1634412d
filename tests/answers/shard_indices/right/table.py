"""A table with a column for each rank."""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    missing = -n % world_size
    while n and missing > 0:
        order = torch.cat([order, order[:missing]])[: n + -n % world_size]
        missing = -len(order) % world_size
    return order.reshape(-1, world_size)[:, rank].clone()
