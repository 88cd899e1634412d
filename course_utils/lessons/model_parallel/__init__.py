"""Lesson 9, What if the model does not fit? Read `parallel_linear` first.

Whole layers on different ranks (`split_layers`); one layer's matrices cut over ranks (`parallel_linear`,
`parallel_block`, by torch in `dtensor`); what moves between ranks (`differentiable_collectives`,
`collective_counts`). What training keeps in memory: `memory_parts` names it, `training_memory` computes it
beforehand, `memory_counter` counts it. The model is `transformer`, its data `text`.
"""
