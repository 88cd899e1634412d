"""Refused with: From which seed is the order drawn: the same for all ranks, another one for every epoch?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch + 1000 * rank))
    length = math.ceil(n / world_size)
    return order.repeat(world_size)[: length * world_size][rank::world_size]
