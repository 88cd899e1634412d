"""Every exercise is called after other calls, too, and nothing that an answer keeps from those plays a part."""

from dataclasses import replace

import numpy as np
import pytest

from course_utils.checks.cases import EARLIER, after_the_others
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.judge import verdict_on
from course_utils.checks.mistake_search import LEFT_OVER
from course_utils.checks.registry import find
from course_utils.checks.verdict import Result

SIZES = Exercise(
    library="nothing",
    number=1,
    minutes=5,
    difficulty=1,
    turn="",
    title="",
    cases=lambda rng, world_size: iter(
        Case(f"{size} numbers", [(np.ones(size),)] * 2, [rank + size for rank in range(2)]) for size in (3, 5)
    ),
    hints=("", ""),
    praise=lambda outcome: outcome.case.label,
)


def afresh(comm, vector):
    return comm.rank + len(vector)


def by_rank():
    kept = {}
    return lambda comm, vector: kept.setdefault(comm.rank, comm.rank + len(vector))


def by_staleness():
    kept = {}

    def scaled(rate, staleness):
        if staleness < 0:
            raise ValueError(staleness)
        return kept.setdefault(staleness, rate / max(1, staleness))

    return scaled


@pytest.mark.parametrize(
    ("exercise", "make"), [(SIZES, by_rank), (find("staleness_scaled_lr"), by_staleness)], ids=["ranks", "none"]
)
def test_what_is_kept_from_a_call_is_found_and_asked_about(exercise, make) -> None:
    """The function is made here, so that it travels anew to each case, as one from a notebook does."""
    verdict = verdict_on(exercise, make(), None)
    assert verdict.result == Result.WRONG and "after other calls" in str(verdict)
    if exercise.file:
        assert verdict.question == LEFT_OVER.text


def test_praise_is_of_a_call_by_itself() -> None:
    verdict = verdict_on(SIZES, afresh, None)
    assert verdict.result == Result.RIGHT and verdict.praise == "5 numbers"


def test_the_last_case_comes_again_with_its_own_results_and_time_for_all_calls() -> None:
    cases = list(SIZES.cases(np.random.default_rng(0), 2))
    [last] = after_the_others(cases)
    assert last.expected == cases[-1].expected
    assert (last.number_of_calls, cases[-1].number_of_calls) == (2, 1)
    [last] = after_the_others(cases * 9)
    assert last.number_of_calls == 1 + EARLIER
    alone = [case for case in find("staleness_scaled_lr").cases(np.random.default_rng(0), 2) if case.key != "rejected"]
    [last] = after_the_others(alone)
    assert last.number_of_calls == 1 + EARLIER < len(alone)


def test_what_measures_time_or_is_alone_does_not_come_again() -> None:
    cases = list(SIZES.cases(np.random.default_rng(0), 2))
    assert list(after_the_others(cases[:1])) == list(after_the_others([])) == []
    assert list(after_the_others([replace(case, timed=True) for case in cases])) == []
    assert list(after_the_others([replace(case, expected=None) for case in cases])) == []
