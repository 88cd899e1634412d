"""Slow program 4: one rank has most of the work, and the others wait for it in every step."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from course_utils.lessons.overlap import played_hardware

TEXTS, BATCH, LETTERS, SIZE, VECTOR_RATE = 32, 16, 64, 8, 50.0
SECONDS_PER_LETTER = 2e-5


def sample_texts(count: int = TEXTS) -> list[torch.Tensor]:
    """Return texts of very different lengths, from short to long in every batch, as vectors of letters from 0 to 63."""
    random = torch.Generator().manual_seed(0)
    lengths = torch.logspace(0.5, 3, BATCH).int().tolist()
    return [torch.randint(LETTERS, (lengths[index % BATCH],), generator=random) for index in range(count)]


def gradient_of(texts: Sequence[torch.Tensor], vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sums of the losses and gradients of some texts. A loss is how far a text's mean vector is from ones.

    It waits for a time proportional to the number of letters, as if each rank had a processor of its own.

    Args:
        texts: any number of texts.
        vectors: a vector for each letter, of shape (letters, width).

    Returns:
        The sum of the losses, a number; the sum of the gradients, of the shape of `vectors`.
    """
    played_hardware.compute(SECONDS_PER_LETTER * sum(map(len, texts)))
    loss, gradient = vectors.new_zeros(()), torch.zeros_like(vectors)
    for text in texts:
        letters = text.to(vectors.device)
        share = torch.bincount(letters, minlength=len(vectors)).to(vectors.dtype) / len(text)
        off = share @ vectors - 1
        loss += (off**2).mean()
        gradient += torch.outer(share, 2 * off / len(off))
    return loss, gradient


def slow_4(texts: Sequence[torch.Tensor], device: str = "cpu") -> list[float]:
    """Train a vector for each letter. Every rank takes its part of every batch, then all-reduces.

    Each step sums two tensors with all_reduce in the default group, the loss and the gradient.

    Args:
        texts: of different lengths, the same on all ranks; every batch goes from short to long.

    Returns:
        The mean loss of each batch, the same list on all ranks.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        share = -(-len(batch) // world_size)
        mine = batch[rank * share : (rank + 1) * share]
        loss, gradient = gradient_of(mine, vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(batch))
    return losses


def speed_up_4(texts: Sequence[torch.Tensor], device: str = "cpu") -> list[float]:
    """Train as `slow_4` does, with the same losses, but give every rank about as many letters.

    All ranks find the same shares without a message. Each step sums two tensors with all_reduce in
    the default group, the loss and the gradient.

    Args:
        texts: of different lengths, the same on all ranks; every batch goes from short to long.

    Returns:
        The mean loss of each batch, the same list on all ranks.

    Source: Graham 1969, "Bounds on multiprocessing timing anomalies" (longest processing time
    first).
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    vectors = torch.zeros(LETTERS, SIZE, device=device)
    losses = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        parts: list[list[torch.Tensor]] = [[] for _ in range(world_size)]
        # The longest come first, because short texts can still even out what long ones leave.
        for text in sorted(batch, key=len, reverse=True):
            min(parts, key=lambda part: sum(map(len, part))).append(text)
        loss, gradient = gradient_of(parts[rank], vectors)
        dist.all_reduce(loss)
        dist.all_reduce(gradient)
        vectors -= VECTOR_RATE * gradient / len(batch)
        losses.append(loss.item() / len(batch))
    return losses
