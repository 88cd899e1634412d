"""Refused with: With which examples is the order filled up?"""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    filled = torch.cat([order, torch.zeros(-n % world_size, dtype=torch.int64)])
    return filled[rank::world_size]
