"""Lesson 5, How do P machines add up their vectors? Read `ring` first.

Six ways, one module each: `gather_broadcast`, `tree`, `recursive_doubling`, `halving_doubling`, `ring` and
`async_ring`; `algorithms` lists them. `double_tree` is NCCL's, beside them. `cost_model` says what each costs,
`allreduce_times` measures it, `network_fit` fits the numbers of a network, and `network_topology` makes networks of
numbers: virtual ranks run on those.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures
    from .algorithms import ALGORITHMS
    from .allreduce_times import measure, message_seconds, training_seconds, work_per_message
    from .async_ring import SEGMENT_BYTES, async_ring_allreduce, segments_per_block
    from .bandwidth import algorithm_bandwidth, bus_bandwidth
    from .blocks import block_bounds, blocks_of, fold_in, fold_out
    from .cost_model import Network, adding_switch_time, bytes_per_rank, rounds
    from .double_tree import double_tree_allreduce, two_trees
    from .halving_doubling import halving_doubling_allreduce
    from .hierarchical import SubCommunicator, hierarchical_allreduce
    from .network_topology import alpha_of, ring_seconds, switch, two_level
    from .ring import ring_all_gather, ring_allreduce, ring_reduce_scatter
    from .sentences import (
        bus_text,
        comparison_text,
        error_text,
        formula_text,
        kept_text,
        network_text,
        predictors,
        ranking_text,
        rounding_text,
    )
    from .shared_links import predicted_seconds
    from .suspicious_ring import WEIGHTS, suspicious_ring, train_digits
    from .tree import tree_allreduce

__getattr__, __dir__, __all__ = attach(__name__, __file__)
