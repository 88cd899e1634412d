"""One quantity measured several times, two by turns, and the one rule that says whether they differ."""

import pytest

from course_utils import measuring
from course_utils.measuring import (
    BUSY,
    Compared,
    Measured,
    by_turns,
    compare,
    is_busy,
    rate_text,
    relative_errors,
    slowest_rank,
    tied,
    unless_busy,
)


def test_a_measurement_is_its_median_and_its_spread() -> None:
    measured = Measured((1.0, 1.1, 0.9, 1.0, 50.0))
    assert measured.median == 1.0 and (measured.low, measured.high) == (0.9, 50.0)
    assert measured.calm and "not at rest" not in rate_text(measured, "s", 1)
    restless = Measured((1.0, 2.0, 3.0, 1.0, 5.0))
    assert not restless.calm and "not at rest" in rate_text(restless, "s", 1)
    assert Measured((2.0, 4.0)).rate(8).values == (4.0, 2.0)
    assert Measured((2.0,)).spread == 0


def test_measures_are_taken_by_turns() -> None:
    order: list[str] = []
    taken = by_turns({name: lambda name=name: order.append(name) or float(len(order)) for name in "AB"}, 3)
    assert "".join(order) == "ABABAB"
    assert taken == {"A": [1.0, 3.0, 5.0], "B": [2.0, 4.0, 6.0]}
    called = iter(range(10))
    assert by_turns({"A": lambda: next(called)}, 2, warm_ups=3) == {"A": [3, 4]}, "warm-ups run and do not count"


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ([2.0, 2.2, 1.9], "A is 2 times as fast as B (1.90 to 2.2 in 3 rounds)"),
        ([0.5, 0.5, 0.5], "B is 2 times as fast as A (2 in 3 rounds)"),
        ([1.04, 1.04, 1.04], "A and B: no clear difference (1.04 times as fast, in 3 rounds)"),
        ([1.2, 0.9, 1.2], "A and B: no clear difference (0.90 to 1.20 times as fast, in 3 rounds)"),
    ],
)
def test_two_programs_differ_or_not(second, verdict) -> None:
    assert str(Compared([1.0] * 3, second, ("A", "B"))) == verdict


def test_one_disturbed_round_of_five_changes_no_verdict() -> None:
    disturbed, more = [1.5, 1.5, 0.7, 1.5, 1.5], [1.5, 0.7, 0.7, 1.5, 1.5]
    assert Compared([1.0] * 5, disturbed).first_is_faster
    assert Compared([1.0] * 5, more).is_tie


def test_a_busy_moment_hits_both() -> None:
    first, second = [1.0, 10.0, 1.0], [2.0, 20.0, 2.0]
    assert Compared(first, second).ratios.values == (2.0, 2.0, 2.0)


def test_values_of_two_days_are_a_tie_where_they_are_near() -> None:
    assert tied(1.0, 1.04) and tied(1.04, 1.0) and not tied(1.0, 1.06)


def test_predictions_are_off_by_a_share_of_what_was_measured() -> None:
    assert relative_errors([1.1, 1.0], [1.0, 2.0]) == pytest.approx([0.1, 0.5])


def test_a_busy_machine_compares_nothing() -> None:
    assert not is_busy([[1.0, 1.1, 1.0], [2.0, 2.0, 9.0, 2.1, 2.0]])
    assert is_busy([[1.0, 2.0, 3.0], [1.0, 5.0, 2.0]])
    assert is_busy([[1.0, 1.0], [0.8, 0.8]], part=[1.0, 1.0])
    assert not is_busy([[1.0, 9.0], [1.5, 2.0]], part=[1.0, 1.0])


def test_what_only_waits_and_takes_longer_was_disturbed() -> None:
    assert not is_busy([[1.0, 1.05, 9.0], [2.0]], planned=[1.0, 2.0])
    assert is_busy([[1.0, 1.2, 1.2], [2.0]], planned=[1.0, 2.0])
    assert not is_busy([])


@pytest.mark.parametrize(
    ("second", "busy"),
    [
        ([2.0, 2.2, 1.9], False),
        ([0.6, 3.0, 1.4, 0.5, 2.2], True),  # they scatter, and do not agree
        ([1.5, 3.0, 2.4, 1.4, 5.0], False),  # they scatter, but agree
        ([1.04, 0.98, 1.0], False),  # a tie
    ],
)
def test_rounds_that_scatter_and_contradict_each_other_compare_nothing(second, busy) -> None:
    pair = Compared([1.0] * len(second), second, ("A", "B"))
    assert pair.is_busy == busy and (str(pair) == BUSY) == busy and (pair.title == BUSY) == busy
    assert unless_busy(pair.is_busy, "A wins") == (BUSY if busy else "A wins")
    assert not (busy and (pair.first_is_faster or pair.second_is_faster))


def test_a_comparison_ends_early_only_where_it_is_clear(monkeypatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: float(next(clock)))

    def takes(ticks: int):
        return lambda: [next(clock) for _ in range(ticks)]

    quick = compare(takes(4), takes(9), target=1.5, fewest=2, warm_up=0)
    assert quick.ratios.values == (2.0, 2.0) and quick.times == 2.0
    assert len(compare(takes(4), takes(4), target=1.5, rounds=5).first) == 5
    assert len(compare(takes(4), takes(9), rounds=5).first) == 5


def shared_ratios() -> tuple[float, ...]:
    """What every rank has measured."""
    return compare(lambda: None, lambda: None, rounds=2, slowest=slowest_rank).ratios.values


def test_all_ranks_measure_the_same(four_ranks) -> None:
    first, *others = four_ranks.run(shared_ratios, backend="gloo", ranks=3).results
    assert all(one == first for one in others)
