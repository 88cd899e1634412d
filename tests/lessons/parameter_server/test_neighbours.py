"""D-PSGD on a ring: the step is the mixing matrix's, two vectors travel whatever P, and distances shrink as W says."""

import numpy as np
import pytest

import course_utils as course
from course_utils.lessons.parameter_server import neighbours, sentences


def mixing_matrix(world_size: int) -> np.ndarray:
    """W, (P, P): row r holds the share of each rank's weights in rank r's mean, a third for itself and each neighbour.

    Source: Lian et al. 2017, §3: W is symmetric, and its rows and columns add up to 1.
    """
    own = np.eye(world_size)
    return (np.roll(own, 1, axis=1) + own + np.roll(own, -1, axis=1)) / 3


def one_step(comm, weights, gradients, rate):
    own = weights[comm.rank].copy()
    neighbours.neighbours_step(comm, own, gradients[comm.rank], rate)
    return own


@pytest.mark.parametrize("world_size", [3, 4])
def test_a_step_is_that_of_the_mixing_matrix_and_sends_two_vectors(four_ranks: course.Ranks, world_size: int) -> None:
    rng = np.random.default_rng(0)
    weights, gradients = rng.normal(size=(2, world_size, 1_001))
    run = four_ranks.run(one_step, weights, gradients, 0.3, ranks=world_size)
    expected = mixing_matrix(world_size) @ weights - 0.3 * gradients
    assert np.abs(np.array(run.results) - expected).max() < 1e-14
    assert run.bytes_per_rank == [2 * 8 * 1_001] * world_size
    assert run.rounds == 2


def test_two_ranks_have_no_two_neighbours(four_ranks: course.Ranks) -> None:
    with pytest.raises(course.RankError, match="3 ranks at least"):
        four_ranks.run(one_step, np.zeros((2, 3)), np.zeros((2, 3)), 0.3, ranks=2)


@pytest.mark.parametrize("world_size", [3, 4, 5, 8, 16])
def test_the_mean_stays_and_the_distance_shrinks_by_the_second_eigenvalue(world_size: int) -> None:
    mixing = mixing_matrix(world_size)
    assert np.allclose(mixing, mixing.T) and np.allclose(mixing.sum(axis=0), 1)
    sizes = np.sort(np.abs(np.linalg.eigvalsh(mixing)))
    assert sizes[-1] == pytest.approx(1) and sizes[-2] == pytest.approx(neighbours.shrinking(world_size), abs=1e-12)


def test_the_distance_is_that_from_the_mean() -> None:
    assert neighbours.consensus_distance([np.array([1.0, 0.0]), np.array([-1.0, 0.0])]) == pytest.approx(1)
    assert neighbours.consensus_distance([np.ones(3)] * 4) == 0


def test_with_the_all_reduce_all_ranks_stay_equal_and_neighbours_come_together(four_ranks: course.Ranks) -> None:
    data = course.data.digits_arrays()
    both = four_ranks.run(neighbours.train_among_neighbours, data, 6, "all-reduce").results
    assert neighbours.consensus_distance([kept[-1] for kept in both]) < 1e-13
    kept = four_ranks.run(neighbours.train_among_neighbours, data, 6, "neighbours", only_average=4).results
    far = [neighbours.consensus_distance(each) for each in zip(*kept, strict=True)]
    assert far[0] == 0 < far[6]
    assert far[10] < far[6] / 50  # a third a step, with 4 ranks


def test_the_sentence_compares_losses_and_distance() -> None:
    told = sentences.neighbours_text([2.0, 0.5], [2.0, 0.4])
    assert told.replace("\N{NO-BREAK SPACE}", " ") == (
        "Averaging with neighbours ends with a loss 25 % above that of the all-reduce"
    )
    assert "below" in sentences.neighbours_text([2.0, 0.4], [2.0, 0.5])
    assert "the same loss" in sentences.neighbours_text([2.0, 0.4], [2.0, 0.401])
