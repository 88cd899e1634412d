"""The taught library of lesson 5: every algorithm on real ranks, compared with MPI's own all-reduce."""

import subprocess
import sys

import numpy as np
import pytest

import course_utils as course
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.blocks import block_bounds, blocks_of
from course_utils.lessons.allreduce.double_tree import double_tree_allreduce, segments_per_half, two_trees
from course_utils.lessons.allreduce.ring import ring_all_gather, ring_reduce_scatter

WORLD_SIZES = (1, 2, 3, 4)
LENGTHS = (0, 1, 2, 3, 5, 8, 1000, 70_001)


def compare(comm, function, cases, seed):
    """For each case (length, dtype): what differs from MPI's own sum, in words."""
    import numpy as np
    from mpi4py import MPI

    wrong = []
    for number, (length, dtype) in enumerate(cases):
        random = np.random.default_rng([seed, number, comm.rank])
        ours = random.integers(0, 5, length).astype(dtype)
        theirs = ours.copy()
        function(comm, ours)
        comm.Allreduce(MPI.IN_PLACE, theirs)
        if ours.dtype != theirs.dtype or not np.array_equal(ours, theirs):
            wrong.append(f"{length} {dtype}: {ours[:5]}, not {theirs[:5]}")
    return wrong


def on_own_dtype(comm, function, dtype, length):
    """The sum of `rank + 1` over the ranks, in a dtype that MPI may not know."""
    import numpy as np

    vector = np.full(length, comm.rank + 1).astype(dtype)
    function(comm, vector)
    return vector


def in_place(comm, function, vector):
    """What the function makes of the vector."""
    function(comm, vector)
    return vector


def in_segments(comm, length):
    vector = np.full(length, float(comm.rank))
    double_tree_allreduce(comm, vector, segment_bytes=800)
    return vector


WAYS = ALGORITHMS | {"double tree": double_tree_allreduce}


@pytest.mark.parametrize("size", WORLD_SIZES)
@pytest.mark.parametrize("name", WAYS)
def test_every_algorithm_is_an_allreduce(four_ranks, name, size, seed):
    dtypes = ("float64", "float32", "int8", "uint16", "int64", "complex128")
    cases = [(length, dtypes[number % len(dtypes)]) for number, length in enumerate(LENGTHS)]
    run = four_ranks.run(compare, WAYS[name], cases, seed, ranks=size)
    assert run.results == [[]] * size


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("dtype", "total"), [("float16", 6), ("bool", 1), ("longdouble", 6), ("complex64", 6)])
def test_sums_of_any_dtype_that_numpy_adds(four_ranks, name, dtype, total):
    run = four_ranks.run(on_own_dtype, ALGORITHMS[name], dtype, 11, ranks=3)
    assert all(vector.dtype == dtype and (vector == total).all() for vector in run.results)


@pytest.mark.parametrize("size", WORLD_SIZES)
@pytest.mark.parametrize("length", LENGTHS)
def test_the_two_halves_of_the_ring(four_ranks, size, length):
    """Rank r ends the reduce-scatter with block r of the sum, and begins the all-gather with it."""
    vectors = [np.arange(length) + 10 * rank for rank in range(size)]
    whole = sum(vectors)
    run = four_ranks.run(in_place, ring_reduce_scatter, course.per_rank(vectors), ranks=size)
    for rank, result in enumerate(run.results):
        assert np.array_equal(blocks_of(result, size)[rank], blocks_of(whole, size)[rank])
    run = four_ranks.run(in_place, ring_all_gather, course.per_rank(run.results), ranks=size)
    assert all(np.array_equal(result, whole) for result in run.results)


@pytest.mark.parametrize("world_size", [*range(1, 40), 64, 100])
def test_both_trees_reach_all_and_nobody_sends_more_than_two_vectors(world_size):
    nodes = [two_trees(rank, world_size) for rank in range(world_size)]
    for tree in (0, 1):
        (root,) = (rank for rank in range(world_size) if nodes[rank][tree][0] is None)
        reached, heights = [root], {root: 0}
        for rank in reached:
            children = nodes[rank][tree][1]
            assert all(nodes[child][tree][0] == rank for child in children)
            heights |= dict.fromkeys(children, heights[rank] + 1)
            reached += children
        assert sorted(reached) == list(range(world_size))
        assert max(heights.values()) <= (world_size - 1).bit_length()
    sent = [sum((parent is not None) + len(children) for parent, children in both) / 2 for both in nodes]
    assert max(sent) <= 2


@pytest.mark.parametrize("size", WORLD_SIZES)
def test_the_double_tree_sends_each_half_in_segments(four_ranks, size):
    run = four_ranks.run(in_segments, 1001, ranks=size)
    assert all(np.array_equal(result, np.full(1001, size * (size - 1) / 2)) for result in run.results)
    assert run.bytes == 2 * (size - 1) * 1001 * 8
    assert run.messages == 2 * 2 * (size - 1) * segments_per_half(1001, 8, 800) if size > 1 else run.messages == 0


@pytest.mark.parametrize(("length", "world_size"), [(0, 3), (1, 1), (2, 4), (10, 4), (12, 4), (103, 8)])
def test_blocks_are_those_of_numpy(length, world_size):
    vector = np.arange(length)
    bounds = block_bounds(length, world_size)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, length, world_size + 1)
    wanted = np.array_split(vector, world_size)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(blocks_of(vector, world_size), wanted, strict=True))
    assert all(np.shares_memory(block, vector) for block in blocks_of(vector, world_size) if len(block))


def test_the_library_does_not_load_mpi():
    module = "course_utils.lessons.allreduce.algorithms"
    lines = f"import sys, {module}; print([m for m in sys.modules if m.startswith('mpi4py') or m == 'torch'])"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
