"""Refused with: Do you return a tensor of indices?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    length = math.ceil(n / world_size)
    return (order * world_size)[: length * world_size][rank::world_size]
