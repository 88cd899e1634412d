"""Refused with: Which examples does nobody ever see?"""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    return order[: n // world_size * world_size][rank::world_size]
