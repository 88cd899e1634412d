"""The order, filled up by hand, in strides."""

import torch


def shard_indices(n, rank, world_size, epoch=0, seed=0):
    generator = torch.Generator()
    generator.manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist()
    position = 0
    while len(order) % world_size:
        order.append(order[position])
        position += 1
    return torch.tensor(order[rank::world_size], dtype=torch.int64)
