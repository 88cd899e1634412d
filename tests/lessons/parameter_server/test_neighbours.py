"""D-PSGD on a ring: the step is the mixing matrix's, two vectors travel whatever P, and distances shrink as W says."""

import ast
from collections.abc import Callable

import numpy as np
import pytest

import course_utils as course
from course_utils.lessons.parameter_server import neighbours, sentences
from workshop.publish.sources import ROOT, read_cells

PAGE = ROOT / "notebooks" / "src" / "08_parameter_server_further.py"


def mixing_matrix(world_size: int) -> np.ndarray:
    """W, (P, P): row r holds the share of each rank's weights in rank r's mean, a third for itself and each neighbour.

    Source: Lian et al. 2017, §3: W is symmetric, and its rows and columns add up to 1.
    """
    own = np.eye(world_size)
    return (np.roll(own, 1, axis=1) + own + np.roll(own, -1, axis=1)) / 3


def on_page(name: str) -> Callable:
    """Return a function that the page defines, as its cell has it."""
    for cell in read_cells(PAGE):
        if cell.cell_type == "code" and f"def {name}(" in cell.source:
            (definition,) = [node for node in ast.parse(cell.source).body if getattr(node, "name", "") == name]
            namespace = {"np": np, "__name__": "__main__"}  # then it is sent to ranks as it is
            exec(compile(ast.Module([definition], []), str(PAGE), "exec"), namespace)
            return namespace[name]
    raise AssertionError(f"{PAGE.name} does not define {name}")


def one_step(comm, step, weights, gradients, rate):
    own = weights[comm.rank].copy()
    step(comm, own, gradients[comm.rank], rate)
    return own


@pytest.mark.parametrize("world_size", [3, 4])
def test_a_step_is_that_of_the_mixing_matrix_and_sends_two_vectors(four_ranks: course.Ranks, world_size: int) -> None:
    rng = np.random.default_rng(0)
    weights, gradients = rng.normal(size=(2, world_size, 1_001))
    run = four_ranks.run(one_step, on_page("neighbours_step"), weights, gradients, 0.3, ranks=world_size)
    expected = mixing_matrix(world_size) @ weights - 0.3 * gradients
    assert np.abs(np.array(run.results) - expected).max() < 1e-14
    assert run.bytes_per_rank == [2 * 8 * 1_001] * world_size
    assert run.rounds == 2


@pytest.mark.parametrize("world_size", [3, 4, 5, 8, 16])
def test_the_mean_stays_and_the_distance_shrinks_by_the_second_eigenvalue(world_size: int) -> None:
    mixing = mixing_matrix(world_size)
    assert np.allclose(mixing, mixing.T) and np.allclose(mixing.sum(axis=0), 1)
    sizes = np.sort(np.abs(np.linalg.eigvalsh(mixing)))
    assert sizes[-1] == pytest.approx(1) and sizes[-2] == pytest.approx(neighbours.shrinking(world_size), abs=1e-12)


def test_the_distance_is_that_from_the_mean() -> None:
    assert neighbours.consensus_distance([np.array([1.0, 0.0]), np.array([-1.0, 0.0])]) == pytest.approx(1)
    assert neighbours.consensus_distance([np.ones(3)] * 4) == 0


def steps_without_gradients(comm, step, steps: int) -> list[np.ndarray]:
    weights = np.random.default_rng(comm.rank).normal(size=50)
    kept = [weights.copy()]
    for _ in range(steps):
        step(comm, weights, np.zeros_like(weights), 0.3)
        kept.append(weights.copy())
    return kept


def test_neighbours_come_together_as_fast_as_the_formula_says(four_ranks: course.Ranks) -> None:
    kept = four_ranks.run(steps_without_gradients, on_page("neighbours_step"), 4).results
    far = [neighbours.consensus_distance(each) for each in zip(*kept, strict=True)]
    assert far[1:] == pytest.approx([before * neighbours.shrinking(4) for before in far[:-1]])


def test_the_sentence_compares_losses_and_distance() -> None:
    told = sentences.neighbours_text([2.0, 0.5], [2.0, 0.4])
    assert told == ("Averaging with neighbours ends with a loss 25% above that of the all-reduce")
    assert "below" in sentences.neighbours_text([2.0, 0.4], [2.0, 0.5])
    assert "the same loss" in sentences.neighbours_text([2.0, 0.4], [2.0, 0.401])
