"""All-reduce: every rank ends with the sum of all ranks' vectors (lesson 5). Six ways, and what each costs.

Every algorithm is a function `name(comm, vector)` that works in place on a one-dimensional, contiguous NumPy array of
any length, with any number of ranks.
"""

from collections.abc import Callable

from course_utils.lessons.allreduce.async_ring import async_ring_allreduce
from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce
from course_utils.lessons.allreduce.halving_doubling import halving_doubling_allreduce
from course_utils.lessons.allreduce.recursive_doubling import recursive_doubling_allreduce
from course_utils.lessons.allreduce.ring import ring_all_gather, ring_allreduce, ring_reduce_scatter
from course_utils.lessons.allreduce.tree import tree_allreduce

__all__ = [
    "ALGORITHMS",
    "async_ring_allreduce",
    "gather_broadcast_allreduce",
    "halving_doubling_allreduce",
    "recursive_doubling_allreduce",
    "ring_all_gather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "tree_allreduce",
]

ALGORITHMS: dict[str, Callable[..., None]] = {
    "gather-broadcast": gather_broadcast_allreduce,
    "tree": tree_allreduce,
    "recursive doubling": recursive_doubling_allreduce,
    "halving-doubling": halving_doubling_allreduce,
    "ring": ring_allreduce,
    "asynchronous ring": async_ring_allreduce,
}
"""By the names they have in pictures and in the formulas of `cost_model`."""
