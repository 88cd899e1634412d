"""Refused with: Whose generator did you draw from: your own, or the one of the whole program?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    torch.manual_seed(seed + epoch)
    order = torch.randperm(n)
    length = math.ceil(n / world_size)
    return order.repeat(world_size)[: length * world_size][rank::world_size]
