"""A small server on real ranks: requests wait in a queue, and one model, cut over the ranks, answers a batch of them.

All ranks know the requests and therefore make the same decisions, so they need no messages about them. In each step of
decoding they read one token for each request in the batch, and a request that has just got its slot brings its whole
prompt. What moves between ranks is two all-reduces a layer, of as many rows as there are tokens in the step.
"""

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import nn

from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.inference.batching import continuous_batch
from course_utils.lessons.inference.cached_model import read_tokens
from course_utils.lessons.inference.kv_cache import KVCache
from course_utils.lessons.model_parallel.parallel_block import parallelise_model
from course_utils.lessons.model_parallel.transformer import character_model
from course_utils.trace.recorder import phase

SIZES = {"characters": 96, "width": 64, "heads": 4, "depth": 2, "context": 64}
"""Of the model that the page serves."""
Batching = Callable[[Sequence[tuple[int, int]], int], list[tuple[int, int, int]]]


def double_model(**sizes: int) -> nn.Sequential:
    """A character model in float64, the same on every rank: 64 bits leave no doubt which token is the likeliest."""
    return character_model(**{**SIZES, **sizes}).double().eval()


def cut_over_ranks(model: nn.Sequential, group: Group = None) -> nn.Sequential:
    """Cut a model's blocks over the ranks as lesson 9 does, if there are several; return it."""
    return parallelise_model(model, group) if dist.get_world_size(group) > 1 else model


def serve(
    model: nn.Sequential,
    prompts: Sequence[torch.Tensor],
    requests: Sequence[tuple[int, int]],
    slots: int,
    batching: Batching = continuous_batch,
) -> list[torch.Tensor]:
    """Answer all requests, a step at a time, and return the tokens of each answer.

    Args:
        model: whole, or cut over the ranks that call this function.
        prompts: of each request, one token at least.
        requests: (arrives, tokens) of each.
        slots: of the batch.
        batching: decides who is in the batch.
    """
    stays = batching(requests, slots)
    caches = [KVCache.of(model) for _ in requests]
    answers: list[list[torch.Tensor]] = [[] for _ in requests]
    for step in range(max((ends for *_, ends in stays), default=0)):
        batch = [number for number, (_, begins, ends) in enumerate(stays) if begins <= step < ends]
        if not batch:
            continue
        new = [answers[number][-1] if answers[number] else prompts[number] for number in batch]
        with phase(f"step of {len(batch)}"):
            logits = read_tokens(model, new, [caches[number] for number in batch])
        after_each = logits.split([len(tokens) for tokens in new])
        for number, rows in zip(batch, after_each, strict=True):
            answers[number].append(rows[-1:].argmax(dim=-1))
    return [torch.cat(answer) for answer in answers]


def drawn_prompts(number: int, seed: int = 0) -> list[torch.Tensor]:
    """Draw prompts of 4 to 12 tokens, the same on every rank."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(4, 13, (number,), generator=generator)
    return [torch.randint(SIZES["characters"], (int(length),), generator=generator) for length in lengths]
