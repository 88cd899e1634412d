"""Lesson 16, What if only some weights are used? Read `expert_layer` first.

`gate` chooses each token's experts and balances them, and `expert_capacity` drops tokens of a crowded expert.
`all_to_all` moves rows between ranks, `two_levels` does so first inside nodes and then between them. `expert_gradients`
adds up gradients. A character model with experts is in `character_experts`, and `expert_training` trains it.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, two_levels
    from .all_to_all import all_to_all_by_messages, balanced_bytes, counted_bytes, exchanged
    from .character_experts import character_experts, flops_per_token
    from .choices import Dispatched, check_choices
    from .experiments import largest_difference, one_layer, rows_by_messages
    from .expert_training import Recipe, train_experts, train_in_one
    from .sentences import (
        balance_text,
        better_text,
        busy_seconds,
        capacity_text,
        computing_gap,
        faster_text,
        gradients_text,
        levels_text,
        load_text,
        sent_text,
        skew_text,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
