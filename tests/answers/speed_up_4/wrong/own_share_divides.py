"""Refused with: By how many texts is the loss of a whole batch divided?"""

import torch
import torch.distributed as dist

from course_utils.lessons.profiling.slow.unbalanced import BATCH, LETTERS, SIZE, VECTOR_RATE, gradient_of


def speed_up_4(texts, device="cpu"):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        parts: list[list[torch.Tensor]] = [[] for _ in range(world_size)]
        for text in sorted(batch, key=len, reverse=True):
            min(parts, key=lambda part: sum(map(len, part))).append(text)
        loss, gradient = gradient_of(parts[rank], vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(parts[rank]))
    return losses
