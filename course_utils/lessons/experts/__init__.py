"""Lesson 16, What if only some weights work? Read `expert_layer` first.

`gate` chooses each token's experts and keeps them balanced, `expert_capacity` drops what is too much. `all_to_all`
moves rows between ranks, on two levels in `two_levels`. `expert_gradients` adds up what belongs together; a character
model with experts is in `character_experts`, and trains in `expert_training`.
"""
