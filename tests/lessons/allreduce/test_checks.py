"""The checks of lesson 5 promise what the library's own counts say, and decode whose numbers are in a sum."""

import math
import types

import numpy as np
import pytest

from course_utils.checks.exercise import Outcome
from course_utils.checks.registry import declared
from course_utils.lessons.allreduce import cost_model
from course_utils.lessons.allreduce.async_ring import SEGMENT_BYTES
from course_utils.lessons.allreduce.checks import allreduce_time as times
from course_utils.lessons.allreduce.checks.common import powers_of_ten
from course_utils.lessons.allreduce.checks.halving_doubling_allreduce import halving_cost
from course_utils.lessons.allreduce.checks.recursive_doubling_allreduce import doubling_cost
from course_utils.lessons.allreduce.checks.ring_allreduce import ring_cost
from course_utils.lessons.allreduce.checks.symptoms import SYMPTOMS, right_places, times_added
from course_utils.lessons.allreduce.checks.tree_allreduce import tree_cost
from course_utils.lessons.allreduce.time_formulas import allreduce_time

BOUNDS = {
    "tree": tree_cost,
    "recursive doubling": doubling_cost,
    "halving-doubling": halving_cost,
    "ring": ring_cost,
}


@pytest.mark.parametrize("algorithm", BOUNDS)
@pytest.mark.parametrize("length", [0, 1, 7, 64, 1003])
def test_bounds_are_what_the_library_costs_and_exact_where_blocks_are_equal(algorithm, length):
    for size in range(1, 20):
        bound = BOUNDS[algorithm](size, length)
        sent = max(cost_model.bytes_per_rank(algorithm, size, length, 1))
        assert bound.rounds == cost_model.rounds(algorithm, size)
        assert sent <= bound.bytes_per_rank
        if length % size == 0 and size & (size - 1) == 0:
            assert sent == bound.bytes_per_rank


@pytest.mark.parametrize("algorithm", cost_model.NAMES)
def test_three_ways_to_the_same_time(algorithm, seed):
    """The formulas of the exercise, the sizes of all messages in its check, and the model of measured networks."""
    rng = np.random.default_rng(seed)
    name = {"gather-broadcast": "through one rank", "asynchronous ring": "ring"}.get(algorithm, algorithm)
    for size in (*range(1, 40), 1000, 1024):
        alpha, beta, gamma = rng.uniform(1e-6, 1e-3), rng.uniform(1e-10, 1e-7), rng.uniform(0, 1e-9)
        line = cost_model.Network(alpha, beta, gamma)
        bent = cost_model.Network(alpha, beta, gamma, ((0, alpha, beta), (1e5, 4 * alpha, beta / 3)))
        nbytes = int(rng.integers(0, 10**8))
        sizes, combined = times.message_sizes(name, size, nbytes), times.added(name, size, nbytes)
        if algorithm == "asynchronous ring" and size > 1:
            segments = max(1, math.ceil(math.ceil(nbytes / size) / SEGMENT_BYTES))
            sizes = [each / segments for each in sizes for _ in range(segments)]
            combined = combined if segments == 1 else nbytes / size / segments
        else:
            expected = times.seconds(name, size, nbytes, alpha, beta, gamma)
            assert math.isclose(allreduce_time(name, size, nbytes, alpha, beta, gamma), expected, rel_tol=1e-9), size
        for network in (line, bent):
            expected = math.fsum(map(network.message_seconds, sizes)) + gamma * combined
            found = cost_model.allreduce_time(algorithm, size, nbytes, network)
            assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-15), size


def outcome_with(*rows: list[float]) -> Outcome:
    """Four ranks that hold these numbers after the first case."""
    case = powers_of_ten(4, 2, tree_cost)
    replies = [types.SimpleNamespace(kind="returned", clean=True, events=[]) for _ in rows]
    return Outcome(case, types.SimpleNamespace(replies=replies), [None] * 4, [(np.array(row),) for row in rows], None)


def test_the_digits_of_a_sum_say_who_is_in_it_and_how_often():
    outcome = outcome_with([1111.0, 1.0], [1111.0, 1210.0], [1111.0, 1000.0], [1111.0, 0.0])
    added = times_added(outcome)
    assert added[1, 1].tolist() == [0, 1, 2, 1]
    assert added[0, 1].tolist() == [1, 0, 0, 0]
    assert right_places(outcome).tolist() == [[True, False]] * 4


@pytest.mark.parametrize("number", [277.75, -1.0, float("nan"), 1e300])
def test_numbers_that_are_no_such_sums_are_not_decoded(number):
    with pytest.raises(ValueError):
        times_added(outcome_with(*[[number, 1111.0]] * 4))


def test_every_symptom_is_spoken_of():
    spoken_of = {name for exercise in declared() for name in exercise.symptoms}
    assert set(SYMPTOMS) <= spoken_of, set(SYMPTOMS) - spoken_of
