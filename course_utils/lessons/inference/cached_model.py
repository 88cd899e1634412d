"""Read new tokens of several texts at once, with the KV caches of what they have read before.

The tokens of all texts are the rows of one matrix. Linear layers, norms and MLPs treat each row by itself, so they read
their weights once for all of them. Only attention keeps the texts apart, because each has a cache of its own. A prompt
(many new tokens of one text) and a step of decoding (one new token of each of many texts) are the same function.

Source: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models", §3.2 (selective
batching).
"""

import math
from collections.abc import Sequence

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.inference.kv_cache import KVCache, LayerCache
from course_utils.lessons.model_parallel.transformer import Attention


def attend_to_cache(made: torch.Tensor, size: int, kept: LayerCache) -> torch.Tensor:
    """Return the attention of one text's new tokens to all its tokens, and add their keys and values to the cache.

    Args:
        made: (new tokens, heads · 3 · size), the queries, keys and values of the new tokens, as `Attention.qkv` lays
            them out.
        size: of a head.
        kept: of the tokens before; changed.

    Returns:
        (new tokens, heads · size).
    """
    past, new = kept.tokens, len(made)
    q, k, v = made.view(new, -1, 3 * size).transpose(0, 1).chunk(3, dim=-1)  # each heads × new × size
    keys, values = kept.append(k, v)
    scores = q @ keys.mT / math.sqrt(size)  # heads × new × all so far
    later = torch.ones(new, past + new, dtype=torch.bool).triu(past + 1)
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    return (weights @ values).transpose(0, 1).flatten(1)


def attention_with_caches(
    attention: Attention, x: torch.Tensor, counts: Sequence[int], kept: Sequence[LayerCache]
) -> torch.Tensor:
    """Return an attention's output for the new tokens of several texts, each with a cache of its own.

    Args:
        attention: of lesson 9, whole or cut over ranks.
        x: (new tokens of all texts, width).
        counts: how many of the rows belong to each text.
        kept: each text's cache in this layer; changed.
    """
    texts = attention.qkv(x).split(list(counts))
    found = [attend_to_cache(made, attention.size, cache) for made, cache in zip(texts, kept, strict=True)]
    return attention.out(torch.cat(found))


@torch.no_grad()
def read_tokens(model: nn.Sequential, texts: Sequence[torch.Tensor], caches: Sequence[KVCache]) -> torch.Tensor:
    """Let a model read new tokens of several texts; return the logits after each of them.

    Args:
        model: a character model of lesson 9, whole, or with its blocks cut over ranks.
        texts: the new tokens of each text, one-dimensional, one at least.
        caches: of the tokens before, one for each text; changed.

    Returns:
        (new tokens of all texts, characters), in the order of the texts.

    Raises:
        CourseError: a text becomes longer than the model can read.
    """
    first, *blocks, last = model
    counts = [len(text) for text in texts]
    if len(counts) != len(caches):
        raise CourseError(f"{len(counts)} texts and {len(caches)} caches. Each text needs a cache of its own.")
    longest = max((cache.tokens + new for cache, new in zip(caches, counts, strict=True)), default=0)
    if longest > len(first.position.weight):
        raise CourseError(f"A text of {longest} tokens is too long: the model reads {len(first.position.weight)}.")
    positions = [torch.arange(cache.tokens, cache.tokens + new) for cache, new in zip(caches, counts, strict=True)]
    x = first.character(torch.cat(list(texts))) + first.position(torch.cat(positions))
    for number, block in enumerate(blocks):
        kept = [cache.layers[number] for cache in caches]
        x = x + attention_with_caches(block.attention, block.norm_1(x), counts, kept)
        x = x + block.mlp(block.norm_2(x))
    return last(x)


@torch.no_grad()
def read_again(model: nn.Sequential, text: torch.Tensor) -> torch.Tensor:
    """Let a model read a whole text without a cache; return the logits after each token, (tokens, characters)."""
    return model(text[None])[0]


def write_greedily(model: nn.Sequential, prompt: torch.Tensor, answer: int) -> torch.Tensor:
    """Return the `answer` tokens that a model writes after a prompt if it always takes the likeliest one."""
    cache, new, written = KVCache.of(model), prompt, []
    for _ in range(answer):
        new = read_tokens(model, [new], [cache])[-1:].argmax(dim=-1)
        written.append(new)
    return torch.cat(written)
