"""Lesson 19, What does one answer cost? Read `kv_cache` first, then `cached_model`.

One process: keys and values that are kept (`kv_cache`), and a model that reads new tokens with them (`cached_model`).
Several ranks: one token through one layer (`decode_step`), and a server of many requests (`request_server`). Who is in
the batch and when (`batching`), and how long the others wait (`queueing`). Prompts read on a rank of their own
(`prefill_placement`), and a small model that drafts for a large one (`speculation`).
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, sentences
    from .batching import check_requests, continuous_batch, static_batch, waiting_steps
    from .cached_model import read_tokens, write_greedily
    from .decode_step import LayerPart
    from .experiments import (
        allreduce_seconds,
        distribution_of,
        drawn_tokens,
        first_layers,
        pair_probabilities,
        reading_seconds,
        token_seconds,
        weights_in_blocks,
    )
    from .kv_cache import KVCache, LayerCache, kv_cache_bytes
    from .prefill_placement import Prefill, break_even
    from .queueing import mean_waiting_steps, random_requests
    from .request_server import cut_over_ranks, double_model, drawn_prompts
    from .speculation import accept_or_resample, acceptance, chi_square, expected_tokens, speculative_round

__getattr__, __dir__, __all__ = attach(__name__, __file__)
