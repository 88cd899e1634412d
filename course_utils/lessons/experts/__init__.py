"""Lesson 16, What if only some weights are used? Read `expert_layer` first.

`gate` chooses each token's experts and keeps them balanced, `expert_capacity` drops what is too much. `all_to_all`
moves rows between ranks, on two levels in `two_levels`. `expert_gradients` adds up what belongs together; a character
model with experts is in `character_experts`, and trains in `expert_training`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, two_levels
    from .all_to_all import all_to_all_by_messages, balanced_bytes, counted_bytes, exchanged
    from .character_experts import character_experts, flops_per_token
    from .choices import Dispatched, check_choices
    from .experiments import largest_difference, one_layer, rows_by_messages, summing
    from .expert_training import Recipe, train_experts, train_in_one
    from .gate import balancing_loss, next_bias, route
    from .sentences import (
        balance_text,
        better_text,
        busy_seconds,
        capacity_text,
        gradients_text,
        levels_text,
        most_balanced,
        sent_text,
        skew_text,
        waiting_share,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
