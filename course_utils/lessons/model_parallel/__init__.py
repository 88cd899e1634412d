"""Lesson 9, What if the model does not fit? Read `parallel_linear` first.

Whole layers on different ranks (`split_layers`); one layer's matrices cut over ranks (`parallel_linear`,
`parallel_block`, by torch in `dtensor`); what moves between ranks (`differentiable_collectives`,
`collective_counts`). What training keeps in memory: `memory_parts` names it, `training_memory` computes it
beforehand, `memory_counter` counts it. The model is `transformer`, its data `text`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import differentiable_collectives, dtensor, pictures
    from .activation_checkpointing import checkpointed
    from .activation_memory import saved_at_most
    from .collective_counts import collectives_in, idle_share, in_phase, moved_text, pass_bytes
    from .differentiable_collectives import Group, all_reduced, moved, own_part, unmoved
    from .experiments import OWN_SEEDS, beside_serial, mlp_beside_whole, ranks_apart, step_memory
    from .held_parts import held_matrices
    from .memory_counter import measured_memory
    from .memory_parts import NUMBER_BYTES, ONE_RANK, Memory, Parallelism, bytes_for_each_parameter, check_stage
    from .parallel_block import parallelise_block
    from .parallel_linear import (
        ColumnParallelLinear,
        RowParallelLinear,
        column_parallel_linear,
        row_parallel_linear,
    )
    from .pictures import what_is_where
    from .sentences import apart_text, collectives_text, idle_text, sequence_text, sizes_text
    from .split_layers import split_layers
    from .text import CHARACTERS, character_text, generate, text_batches
    from .training_memory import layer_parameters, training_memory
    from .transformer import character_model

__getattr__, __dir__, __all__ = attach(__name__, __file__)
