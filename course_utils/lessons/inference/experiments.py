"""What lesson 19 runs: passes timed by the number of tokens, decoding on ranks beside one process, and many rounds."""

import time
from collections.abc import Sequence
from functools import cache, partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from course_utils.lessons.inference.cached_model import read_again, read_tokens
from course_utils.lessons.inference.decode_step import decode_step, layer_part
from course_utils.lessons.inference.kv_cache import KVCache
from course_utils.lessons.inference.request_server import cut_over_ranks, double_model
from course_utils.lessons.inference.speculation import Distribution, Rule, accept_or_resample, speculative_round
from course_utils.lessons.model_parallel.parallel_linear import ColumnParallelLinear, RowParallelLinear
from course_utils.lessons.model_parallel.transformer import Block, character_model
from course_utils.measuring import Measured, by_turns
from course_utils.trace.recorder import phase


def drawn_tokens(number: int, characters: int = 96, seed: int = 19) -> torch.Tensor:
    """Draw a text of so many tokens, the same on every rank."""
    return torch.randint(characters, (number,), generator=torch.Generator().manual_seed(seed))


# --- one process ----------------------------------------------------------------------------------------------------


def reading_seconds(model: nn.Sequential, counts: Sequence[int], rounds: int = 7) -> dict[int, Measured]:
    """Measure, by turns, the seconds of a pass that reads so many new tokens of one text at once."""
    texts = {count: drawn_tokens(count) for count in counts}

    def seconds(count: int) -> float:
        cache = KVCache.of(model)
        began = time.perf_counter()
        read_tokens(model, [texts[count]], [cache])
        return time.perf_counter() - began

    taken = by_turns({count: partial(seconds, count) for count in counts}, rounds, warm_ups=1)
    return {count: Measured(tuple(values)) for count, values in taken.items()}


def weights_in_blocks(model: nn.Sequential) -> int:
    """Count the weights of the linear layers of all blocks and of the head: each is used once for every token."""
    linear = [module for layer in model[1:] for module in layer.modules() if isinstance(module, nn.Linear)]
    return sum(layer.weight.numel() for layer in linear)


# --- decoding over ranks --------------------------------------------------------------------------------------------


def decoded_beside_one_process(prompt: int = 12, answer: int = 4, **sizes: int) -> float:
    """Read a prompt and decode on all ranks; return how far the logits are from one process, at most, in float64.

    The phases "prefill" and "token" show what moves.
    """
    text = drawn_tokens(prompt + answer)
    wanted = read_again(double_model(**sizes), text)
    model = cut_over_ranks(double_model(**sizes))
    cache = KVCache.of(model)
    with phase("prefill"):
        rows = [read_tokens(model, [text[:prompt]], [cache])]
    for token in text[prompt:]:
        with phase("token"):
            rows.append(read_tokens(model, [token[None]], [cache]))
    return (torch.cat(rows) - wanted).abs().max().item()


def decode_steps_beside_one_process(tokens: int = 6) -> float:
    """Send tokens through all layers by `decode_step`; return how far the logits are from one process, at most."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    first, *blocks, last = model = double_model()
    text, kept = drawn_tokens(tokens), KVCache.of(model)
    parts = [layer_part(block, rank, world_size) for block in blocks]
    rows = []
    with torch.no_grad():
        for position, token in enumerate(text):
            x = first.character(token) + first.position.weight[position]
            for part, layer in zip(parts, kept.layers, strict=True):
                x = decode_step(part, x, layer)
            rows.append(last(x))
    return (torch.stack(rows) - read_again(model, text)).abs().max().item()


def allreduce_seconds(lengths: Sequence[int], rounds: int = 9) -> dict[int, list[float]]:
    """Return the seconds of an all-reduce of so many float32 numbers, from a common start, by turns; on this rank."""

    def seconds(length: int) -> float:
        vector = torch.zeros(length)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(vector)
        return time.perf_counter() - began

    return by_turns({length: partial(seconds, length) for length in lengths}, rounds, warm_ups=2)


def token_seconds(texts: int = 1, rounds: int = 9, **sizes: int) -> dict[str, list[float]]:
    """Return the seconds of a step of decoding in float32, "with" its all-reduces and "without", by turns.

    Without them the result is wrong, and the computing is the same.

    Args:
        texts: in the batch, each with a prompt of 8 tokens.
        sizes: of the model, as for `character_model`.
    """
    # Every rank makes every group, as torch asks.
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    caches, models = {}, {}
    prompts = [drawn_tokens(8, seed=text) for text in range(texts)]
    for name in ("with", "without"):
        models[name] = cut_over_ranks(character_model(96, **sizes).eval())
        if name == "without":
            send_nothing(models[name], alone)
        caches[name] = [KVCache.of(models[name]) for _ in range(texts)]
        read_tokens(models[name], prompts, caches[name])

    def seconds(name: str) -> float:
        dist.barrier()
        began = time.perf_counter()
        read_tokens(models[name], [prompt[:1] for prompt in prompts], caches[name])
        return time.perf_counter() - began

    return by_turns({name: partial(seconds, name) for name in models}, rounds, warm_ups=2)


def send_nothing(model: nn.Sequential, alone: dist.ProcessGroup) -> None:
    """Let the layers of a cut model sum over a group that consists of this rank only."""
    for module in model.modules():
        if isinstance(module, (ColumnParallelLinear, RowParallelLinear)):
            module.group = alone


# --- speculation ----------------------------------------------------------------------------------------------------


def distribution_of(model: nn.Sequential, temperature: float = 1.0) -> Distribution:
    """Return a function that gives a model's distribution after a text, and remembers it."""

    @cache
    def after(text: tuple[int, ...]) -> np.ndarray:
        logits = read_again(model, torch.tensor(text))[-1]
        return (logits.double() / temperature).softmax(dim=-1).numpy()

    return lambda text: after(tuple(int(token) for token in text))


def first_layers(model: nn.Sequential, blocks: int) -> nn.Sequential:
    """Return a small model: the embedding, the first blocks and the head of a large one, which they share.

    Source: Elhoushi et al. 2024, "LayerSkip": drafts by a model's own first layers.
    """
    kept = [layer for layer in model if isinstance(layer, Block)][:blocks]
    return nn.Sequential(model[0], *kept, model[-1])


def pair_counts(
    start: Sequence[int],
    draft: Distribution,
    target: Distribution,
    length: int,
    rounds: int,
    generator: np.random.Generator,
    characters: int,
    rule: Rule = accept_or_resample,
) -> np.ndarray:
    """Count which two tokens follow a text, (characters, characters); a round that adds one is followed by another."""
    counts = np.zeros((characters, characters))
    for _ in range(rounds):
        added: list[int] = []
        while len(added) < 2:
            added += speculative_round([*start, *added], draft, target, length, generator, rule)
        counts[added[0], added[1]] += 1
    return counts


def pair_probabilities(start: Sequence[int], target: Distribution) -> np.ndarray:
    """Return the probability of each pair of tokens to follow a text, by the large model alone."""
    first = target(start)
    return np.stack([first[token] * target([*start, token]) for token in range(len(first))])
