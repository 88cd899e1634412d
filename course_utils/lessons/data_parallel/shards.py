"""Which examples each rank works on: dealt out so that all ranks have equally many."""

import math

import torch
import torch.distributed as dist


def shard_indices(
    n: int,
    rank: int,
    world_size: int,
    epoch: int = 0,
    seed: int = 0,
) -> torch.Tensor:
    """The examples that `rank` works on in `epoch`. No messages: all ranks draw the same order.

    The order of all n examples is `torch.randperm(n, generator=g)`, where the generator g is seeded
    with `seed + epoch`. If n is not divisible by `world_size`, the order is padded with entries
    from its own beginning until its length is, because a rank with more steps than the others
    would wait for them for ever. Rank r takes the entries r, r + world_size, r + 2·world_size, …
    So the k-th batches of all ranks together are the k-th batch of a single process.

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


def shard_of_batch(batch: torch.Tensor, batch_size: int) -> tuple[torch.Tensor, float]:
    """This rank's examples of a global batch, which all ranks have drawn alike. Nothing moves between ranks.

    Rank r takes the entries r, r + world_size, r + 2·world_size, …: the same that `shard_indices` deals to it. In the
    last batch of an epoch, which may not be full, some ranks may have an example more than others.

    Args:
        batch: the indices of the batch's examples; there may be fewer than `batch_size`.
        batch_size: of a full batch.

    Returns:
        The indices, and the weight of their mean loss: with it the mean over all ranks is the mean of the batch. The
        weight is 1 where all ranks have equally many examples.

    Raises:
        ValueError: a full batch does not divide among the ranks, or there are fewer examples than ranks.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if batch_size % world_size:
        raise ValueError(f"a global batch of {batch_size} does not divide among {world_size} ranks")
    if len(batch) < world_size:
        raise ValueError(
            f"the last batch has {len(batch)} for {world_size} ranks: choose another batch size, or keep_last=False"
        )
    mine = batch[rank::world_size]
    return mine, len(mine) * world_size / len(batch)
