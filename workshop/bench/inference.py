"""Answers of a model: equal to one process, bytes and sums counted, steps by the line, and exact guesses.

Chosen by words: `course bench inference equal`, `cache`, `reading`, `line`, `exact`.
"""

import statistics
from collections.abc import Callable, Sequence

from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import nodes_of, ranks_of
from workshop.bench.rows import Row, ratio_row, value_row

RANKS, RATE, LATENCY = 4, 100, "2 ms"
"""Ranks, the rate of their links in Mbit/s, and their latency."""
SAME = 1e-12
CHEAP = 0.5
"""Seconds of a pass for 64 tokens ÷ those of 64 passes for one token."""
OFF = 0.35
"""A step's waiting for messages may be off by this share from what the line predicts."""
LIKELY = 0.001
"""The least p-value: rounds of a fixed seed, so it is the same in every run."""


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts: dict[str, Callable[[int], list[Row]]] = {
        "equal": equal,
        "cache": cache,
        "reading": reading,
        "line": line,
        "exact": exact,
    }
    return [row for part in chosen_parts("inference", parts, only).values() for row in part(runs)]


def equal(runs: int) -> list[Row]:
    """Logits beside one process that reads everything again, with lesson 9's layers and by `decode_step`; its sums."""
    from course_utils.lessons.inference.experiments import decode_steps_beside_one_process, decoded_beside_one_process

    rows = []
    with ranks_of(RANKS) as ranks:
        for function in (decoded_beside_one_process, decode_steps_beside_one_process):
            went = ranks.run(function, backend="gloo")
            label = f"{function.__name__.replace('_', ' ')}: far, at most"
            rows.append(Row("inference", label, max(went.results), "", "lower", SAME, 0.0, 1))
        sums = went.collectives / (6 * 2)  # six tokens, two layers
        rows.append(Row("inference", "all-reduces of a token in a layer", sums, "", "lower", 2.0, 0.0, 1))
    return rows


def cache(runs: int) -> list[Row]:
    """Bytes of a real cache against the formula."""
    from course_utils.lessons.inference.cached_model import read_tokens
    from course_utils.lessons.inference.experiments import drawn_tokens
    from course_utils.lessons.inference.kv_cache import KVCache, kv_cache_bytes
    from course_utils.lessons.inference.request_server import double_model

    model = double_model()
    kept = KVCache.of(model)
    read_tokens(model, [drawn_tokens(20)], [kept])
    ratio = kept.nbytes / kv_cache_bytes([20], layers=2, kv_heads=4, head_size=16, itemsize=8)
    return [Row("inference", "cache: bytes counted / predicted", ratio, "×", "lower", 1.0, 0.0, 1)]


def reading(runs: int) -> list[Row]:
    """A pass for 64 tokens against 64 passes for one token, measured by turns."""
    from course_utils.lessons.inference.experiments import reading_seconds
    from course_utils.lessons.model_parallel.transformer import character_model

    seconds = reading_seconds(character_model(96, width=512, heads=8, depth=6).eval(), [1, 64], runs)
    single = [64 * value for value in seconds[1].values]
    label = "seconds, a pass for 64 tokens / 64 passes for one"
    return [ratio_row("inference", label, seconds[64].values, single, target=CHEAP)]


def line(runs: int) -> list[Row]:
    """How far lesson 4's line is off for what a step of decoding waits for messages."""
    from course_utils.lessons.inference.experiments import allreduce_seconds, token_seconds
    from course_utils.lessons.messages.ping_pong import fit_alpha_beta
    from course_utils.lessons.overlap.step_times import slowest

    lengths, width, depth = [64, 1024, 16_384, 65_536], 128, 4
    with nodes_of(RANKS, RATE, LATENCY) as ranks:
        found = slowest(ranks.run(allreduce_seconds, lengths, runs, backend="gloo").results)
        taken = slowest(ranks.run(token_seconds, 1, runs, width=width, depth=depth, backend="gloo").results)
    medians = [statistics.median(found[length]) for length in lengths]
    alpha, beta = fit_alpha_beta([4.0 * length for length in lengths], medians)
    predicted = 2 * depth * (alpha + beta * 4 * width)
    pairs = zip(taken["with"], taken["without"], strict=True)
    off = [abs(predicted / (whole - computing) - 1) for whole, computing in pairs]
    return [value_row("inference", "waiting of a step, predicted / measured: off by", off, "of 1", target=OFF)]


def exact(runs: int) -> list[Row]:
    """The p-value of two tokens after many rounds of guesses, against the large model's distribution."""
    import numpy as np

    from course_utils.lessons.inference.experiments import (
        distribution_of,
        first_layers,
        pair_counts,
        pair_probabilities,
    )
    from course_utils.lessons.inference.request_server import double_model
    from course_utils.lessons.inference.speculation import chi_square

    model = double_model(characters=6, width=16, heads=2, depth=3, seed=1)
    draft, target = distribution_of(first_layers(model, 1), 0.25), distribution_of(model, 0.25)
    counts = pair_counts([0, 3], draft, target, 3, 2000, np.random.default_rng(5), 6)
    p_value = chi_square(counts, pair_probabilities([0, 3], target))[1]
    return [Row("inference", "guesses: p-value of the text's distribution", p_value, "", "higher", LIKELY, 0.0, 1)]
