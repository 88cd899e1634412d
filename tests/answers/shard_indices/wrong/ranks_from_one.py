"""Refused with: Do the ranks count from 0?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    length = math.ceil(n / world_size)
    return order.repeat(world_size)[: length * world_size][(rank + 1) % world_size :: world_size]
