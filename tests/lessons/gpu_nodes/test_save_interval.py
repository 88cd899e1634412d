"""How often to save: the formula, what is expected, and what a simulation counts."""

import math

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.save_interval import best_interval, goodput, simulated_goodput
from course_utils.lessons.gpu_nodes.sentences import intervals_text

MONTH = 30 * 24.0


def test_the_interval_is_young_s() -> None:
    assert best_interval(50, 1, 1) == best_interval(50, 4, 4) == 600
    assert best_interval(60, 1000, 400) == pytest.approx(best_interval(60, 1000, 100) / 2)
    for wrong in ((0, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(CourseError):
            best_interval(*wrong)


def test_the_goodput_is_highest_where_the_formula_says() -> None:
    """To first order: the maximum of what is expected is within a few percent of it, and no other place is higher."""
    save, mean = 30.0, 5 * 3600.0
    best = best_interval(save, 5, 1)
    shares = {factor: goodput(factor * best, save, mean) for factor in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)}
    assert max(shares, key=shares.__getitem__) == 1.0
    assert shares[1.0] == pytest.approx(1 - math.sqrt(2 * save / mean), abs=0.005)


@pytest.mark.parametrize("restart", [0.0, 400.0])
@pytest.mark.parametrize("interval", [300.0, 1200.0, 5000.0])
def test_a_simulation_counts_what_is_expected(interval, restart) -> None:
    mean = 10_000.0
    counted = simulated_goodput(interval, 60, mean, restart, hours=4 * MONTH)
    assert counted == pytest.approx(goodput(interval, 60, mean, restart), rel=0.05)


def test_without_failures_only_checkpoints_cost() -> None:
    assert simulated_goodput(540, 60, 1e12) == pytest.approx(0.9)
    assert goodput(540, 60, 1e12) == pytest.approx(0.9)


def test_the_title_names_the_best_interval_of_each_cost() -> None:
    shares = {"all wait 60 s": [[0.6], [0.86, 0.87, 0.88], [0.7]], "all wait 5 s": [[0.9], [0.85], [0.7]]}
    title, below = intervals_text([2, 16, 128], shares, {"all wait 60 s": 19.2, "all wait 5 s": 5.56})
    assert "16 minutes if all wait 60 s (goodput 87" in title and "2 minutes if all wait 5 s (goodput 90" in title
    assert below.startswith("On paper: 19 and 5.6 minutes. A simulation")
