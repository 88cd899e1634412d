"""Which examples each rank works on: dealt out so that no two ranks have the same, and all have as many."""

import math

import torch


def shard_indices(n: int, rank: int, world_size: int, epoch: int = 0, seed: int = 0) -> torch.Tensor:
    """The examples that `rank` works on in `epoch`. Nothing moves between ranks: all draw the same order.

    The order of all n examples is `torch.randperm(n, generator=g)`, where g is seeded with `seed + epoch`.
    It is filled up from its own beginning until its length divides by `world_size`: ranks with different numbers
    of steps would wait for each other for ever. Rank r takes the entries r, r + world_size, r + 2·world_size, …:
    so the k-th batches of all ranks together are the k-th batch of a single process.

    Returns:
        ⌈n / world_size⌉ indices between 0 and n − 1, int64.

    Source: `torch.utils.data.DistributedSampler`, which deals out examples in the same way.
    """
    # The same seed gives the same order on all ranks, without a message.
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator)
    # The same number for each rank:
    # a rank with no batch left would make the others wait in the all-reduce.
    per_rank = math.ceil(n / world_size)
    filled_up = order.repeat(world_size)[: per_rank * world_size]
    return filled_up[rank::world_size]
