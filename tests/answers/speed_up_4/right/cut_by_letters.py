"""Neighbours stay together; a rank's part ends where its share of the letters is full."""

import torch
import torch.distributed as dist

from course_utils.lessons.profiling.slow.unbalanced import BATCH, LETTERS, SIZE, VECTOR_RATE, gradient_of


def speed_up_4(texts, device="cpu"):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        ends = torch.tensor([len(text) for text in reversed(batch)]).cumsum(0)
        middles = ends - torch.tensor([len(text) for text in reversed(batch)]) / 2
        owners = (middles / ends[-1] * world_size).long().clamp(max=world_size - 1).tolist()
        mine = [text for text, owner in zip(reversed(batch), owners, strict=True) if owner == rank]
        loss, gradient = gradient_of(mine, vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(batch))
    return losses
