"""Refused with: Are the first batches of all ranks, taken together, the first batch of one process?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    length = math.ceil(n / world_size)
    return order.repeat(world_size)[rank * length : (rank + 1) * length]
