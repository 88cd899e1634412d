"""Refused with: What does a rank do while another one has a step more than it?"""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))
    return order[rank::world_size]
