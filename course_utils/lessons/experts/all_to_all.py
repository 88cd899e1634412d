"""All-to-all: every rank sends something different, and as much as it likes, to every other rank.

An all-reduce makes one sum for all ranks. Here nothing is added up, and rank r's rows for rank s go to rank s alone.
"""

from collections.abc import Sequence
from functools import partial

import torch
import torch.distributed as dist

from course_utils.lessons.data_parallel.differentiable import Group, moved


def all_to_all(rows: torch.Tensor, sent: Sequence[int], received: Sequence[int], group: Group = None) -> torch.Tensor:
    """Return the rows that all ranks, and this one itself, have for this rank, in the order of the ranks.

    Args:
        rows: (sum of `sent`, …): first those for rank 0, then those for rank 1, …
        sent, received: how many rows to, and from, each rank of the group.

    Returns:
        (sum of `received`, …).
    """
    came = rows.new_empty((sum(received), *rows.shape[1:]))
    dist.all_to_all_single(came, rows.contiguous(), list(received), list(sent), group=group)
    return came


def all_to_all_by_messages(
    rows: torch.Tensor, sent: Sequence[int], received: Sequence[int], group: Group = None
) -> torch.Tensor:
    """Do the same with plain messages, as the collective does inside; where there are no rows, there is no message."""
    rank, came = dist.get_rank(group), rows.new_empty((sum(received), *rows.shape[1:]))
    outgoing, incoming = rows.detach().split(list(sent)), came.split(list(received))
    incoming[rank].copy_(outgoing[rank])
    others = [other for other in range(dist.get_world_size(group)) if other != rank]
    receives = [dist.irecv(incoming[other], group=group, group_src=other) for other in others if received[other]]
    sends = [dist.isend(outgoing[other].clone(), group=group, group_dst=other) for other in others if sent[other]]
    for work in receives + sends:
        work.wait()
    return came


def exchanged(rows: torch.Tensor, sent: Sequence[int], received: Sequence[int], group: Group = None) -> torch.Tensor:
    """Do `all_to_all` in a way that autograd can go through: the rows' gradients travel back to where the rows were."""
    there = partial(all_to_all, sent=sent, received=received, group=group)
    back = partial(all_to_all, sent=received, received=sent, group=group)
    return moved(rows, there, back)


def balanced_bytes(tokens: int, k: int, width: int, itemsize: int, ranks: int) -> float:
    """Return the bytes that a rank sends to others in one direction if its tokens are spread evenly over all ranks.

    Each of its `tokens` goes to k experts, and of P ranks P − 1 are others: k · tokens · width · (P − 1)/P · itemsize.
    """
    return k * tokens * width * (ranks - 1) / ranks * itemsize


def counted_bytes(sent: Sequence[int], rank: int, width: int, itemsize: int) -> int:
    """Return the exact bytes that rank `rank` sends to others, from the number of its rows for each rank."""
    return (sum(sent) - sent[rank]) * width * itemsize
