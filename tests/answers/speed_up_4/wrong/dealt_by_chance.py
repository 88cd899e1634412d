"""Refused with: Is every text computed whole, by exactly one rank?

Every rank shuffles for itself.
"""

import random

import torch
import torch.distributed as dist

from course_utils.lessons.profiling.slow.unbalanced import BATCH, LETTERS, SIZE, VECTOR_RATE, gradient_of


def speed_up_4(texts, device="cpu"):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        batch = random.sample(batch, len(batch))
        share = -(-len(batch) // world_size)
        mine = batch[rank * share : (rank + 1) * share]
        loss, gradient = gradient_of(mine, vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(batch))
    return losses
