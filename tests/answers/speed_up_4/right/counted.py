"""As long as the counts of letters are kept beside the parts."""

import torch
import torch.distributed as dist

from course_utils.lessons.profiling.slow.unbalanced import BATCH, LETTERS, SIZE, VECTOR_RATE, gradient_of


def speed_up_4(texts, device="cpu"):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        parts, letters = [[] for _ in range(world_size)], [0] * world_size
        for text in reversed(batch):
            least = letters.index(min(letters))
            parts[least].append(text)
            letters[least] += len(text)
        loss, gradient = gradient_of(parts[rank], vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(batch))
    return losses
