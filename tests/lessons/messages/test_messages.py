"""The taught library of lesson 4: on real ranks against MPI's own operations, and the formulas by hand."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import course_utils as course
from course_utils.lessons.messages import broadcast_and_scatter, point_to_point
from course_utils.lessons.messages.broadcast_and_scatter import flat_broadcast, scatter_blocks, tree_broadcast
from course_utils.lessons.messages.checks.common import DTYPES
from course_utils.lessons.messages.ping_pong import fit_alpha_beta, message_time, ping_pong
from course_utils.lessons.messages.point_to_point import exchange_without_deadlock, pass_the_token

WORLD_SIZES = (1, 2, 3, 4)


def broadcast_every_way(comm, broadcast, length, dtype):
    """For each root: is `vector` after our broadcast what MPI's own makes of it?"""
    import numpy as np

    equal = []
    for root in range(comm.size):
        ours = (np.arange(length) + 7 * comm.rank).astype(dtype)
        theirs = ours.copy()
        broadcast(comm, ours, root)
        comm.Bcast(theirs, root=root)
        equal.append(bool((ours == theirs).all()))
    return equal


def scatter_every_way(comm, lengths, dtype):
    """For each root and length: this rank's block, and what NumPy's `array_split` gives it."""
    import numpy as np

    from course_utils.lessons.messages.broadcast_and_scatter import scatter_blocks

    equal = []
    for root in range(comm.size):
        for length in lengths:
            whole = (np.arange(length) + 100 * root).astype(dtype)
            block = scatter_blocks(comm, whole if comm.rank == root else None, root)
            wanted = np.array_split(whole, comm.size)[comm.rank]
            equal.append(block.dtype == wanted.dtype and np.array_equal(block, wanted))
    return equal


@pytest.mark.parametrize("size", WORLD_SIZES)
def test_the_token_collects_the_sums(four_ranks, size):
    numbers = [3, -10, 200, 0.5][:size]
    run = four_ranks.run(pass_the_token, course.per_rank(numbers), ranks=size)
    assert run.results == [sum(numbers), *(sum(numbers[:rank]) for rank in range(1, size))]
    assert run.messages == run.rounds == (size if size > 1 else 0)


@pytest.mark.parametrize("length", [0, 1, 300_000])
def test_partners_swap_in_one_round_and_keep_their_own(four_ranks, length):
    vectors = [np.full(length, rank, dtype="float32") for rank in range(4)]
    run = four_ranks.run(exchange_without_deadlock, course.per_rank(vectors), course.per_rank([2, 3, 0, 1]))
    for rank, result in enumerate(run.results):
        assert result.dtype == np.float32
        assert np.array_equal(result, vectors[(rank + 2) % 4])
    assert (run.rounds, run.messages, run.bytes) == (1, 4, 4 * 4 * length)


def test_a_rank_can_be_its_own_partner(four_ranks):
    run = four_ranks.run(exchange_without_deadlock, np.arange(100_000), 0, ranks=1)
    assert np.array_equal(run.results[0], np.arange(100_000))


@pytest.mark.parametrize("size", WORLD_SIZES)
@pytest.mark.parametrize("broadcast", [flat_broadcast, tree_broadcast])
@pytest.mark.parametrize(("length", "dtype"), [(0, "float64"), (1, "int16"), (70_000, "float32")])
def test_broadcasts_do_what_mpi_does_from_every_root(four_ranks, broadcast, size, length, dtype):
    run = four_ranks.run(broadcast_every_way, broadcast, length, dtype, ranks=size)
    assert run.results == [[True] * size] * size


@pytest.mark.parametrize(("broadcast", "rounds"), [(flat_broadcast, [0, 1, 2, 3]), (tree_broadcast, [0, 1, 2, 2])])
def test_rounds_and_messages_of_the_broadcasts(four_ranks, broadcast, rounds):
    for size, wanted in zip(WORLD_SIZES, rounds):
        for root in range(size):
            run = four_ranks.run(broadcast, np.zeros(10), root, ranks=size)
            assert (run.rounds, run.messages, run.bytes) == (wanted, size - 1, 80 * (size - 1))


@pytest.mark.parametrize("size", WORLD_SIZES)
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64", "bool"])
def test_blocks_are_as_equal_as_possible(four_ranks, size, dtype):
    run = four_ranks.run(scatter_every_way, [0, 1, 3, 4, 5, 103], dtype, ranks=size)
    assert all(all(equal) for equal in run.results)


def test_every_element_is_sent_once(four_ranks):
    vector = np.random.default_rng(0).random(100_003)
    run = four_ranks.run(scatter_blocks, course.per_rank([None, None, vector, None]), 2)
    assert np.array_equal(np.concatenate(run.results), vector)
    assert vector.nbytes <= run.bytes <= vector.nbytes + 1000


def datatypes_of(comm, dtypes):
    import numpy as np
    from mpi4py import MPI

    return [MPI.Datatype.fromcode(np.dtype(dtype).char).Get_name() for dtype in dtypes]


def test_checks_draw_dtypes_that_every_mpi_can_send(four_ranks):
    of_the_standard = four_ranks.run(datatypes_of, DTYPES).results[0]
    assert "float16" not in DTYPES and all(name.startswith("MPI_") for name in of_the_standard), of_the_standard


def test_ping_pong_counts_and_takes_time(four_ranks):
    run = four_ranks.run(ping_pong, 1000, 5, ranks=2)
    assert run.results[0] > 0
    assert run.results[1] is None
    assert run.messages == 2 * (5 + 1)


def test_ping_pong_leaves_other_ranks_alone(four_ranks):
    run = four_ranks.run(ping_pong, 0, 1)
    assert run.results[1:] == [None] * 3
    assert {event.rank for event in run.events} == {0, 1}


@pytest.mark.parametrize(("alpha", "beta"), [(1e-6, 1e-10), (5e-3, 8e-9), (0.0, 1.0)])
def test_a_line_is_found_again(alpha, beta):
    sizes = [1, 10, 1000, 10**6, 10**8]
    found = fit_alpha_beta(sizes, [message_time(n, alpha, beta) for n in sizes])
    assert found == pytest.approx((alpha, beta), rel=1e-6, abs=1e-9)
    assert all(type(number) is float for number in found)


def test_relative_errors_are_minimised(seed):
    rng = np.random.default_rng(seed)
    sizes = 4.0 ** np.arange(11)
    seconds = (1e-5 + 1e-9 * sizes) * np.exp(0.2 * rng.standard_normal(11))

    def error(alpha, beta):
        return np.sum((message_time(sizes, alpha, beta) / seconds - 1) ** 2)

    alpha, beta = fit_alpha_beta(sizes, seconds)
    for factor in (0.99, 1.01):
        assert error(alpha, beta) < error(alpha * factor, beta)
        assert error(alpha, beta) < error(alpha, beta * factor)


def test_message_time_by_hand():
    assert message_time(0, 2e-6, 1e-9) == 2e-6
    assert message_time(1_000_000, 2e-6, 1e-9) == pytest.approx(1.002e-3)


def test_importing_the_library_does_not_start_mpi():
    code = "import sys, course_utils.lessons.messages.point_to_point; sys.exit('mpi4py.MPI' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_function_names_its_source():
    for module in (point_to_point, broadcast_and_scatter, inspect.getmodule(ping_pong)):
        functions = [
            one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__
        ]
        assert functions and all("Source:" in function.__doc__ for function in functions)
