"""Refused with: Were the examples shuffled before they were dealt out?"""

import math

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    length = math.ceil(n / world_size)
    return torch.arange(n).repeat(world_size)[: length * world_size][rank::world_size]
