"""How findings are worded: what they are about has a name, and what may explain a number is said behind it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from fake_ranks import FakeRanks

from course_utils.checks.cases import AFTER_ANOTHER_CALL, in_a_row, rejected, rejections
from course_utils.checks.compare import difference
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.finding_text import text_of
from course_utils.checks.judge import Options, verdict_on_these
from course_utils.checks.promised_errors import Raises
from course_utils.checks.verdict import Verdict

COMMON = {"library": "", "number": 1, "minutes": 1, "difficulty": 1, "turn": ""}


def verdict(function, *cases: Case) -> Verdict:
    exercise = Exercise(cases=lambda rng, size: cases, **COMMON)
    return verdict_on_these(exercise, function, FakeRanks(4), Options(seed=1, hide=False, patience=0.5))


def said(function, *cases: Case) -> str:
    return str(verdict(function, *cases)).removeprefix("✗ : ")


TWO = Case("two", [()], [(np.zeros(2), np.ones(2))], with_comm=False)


def test_entries_of_a_result_have_the_names_that_an_exercise_gives_them() -> None:
    swapped = (np.zeros(2), np.zeros(2))
    assert said(lambda: swapped, TWO) == "`result[1]` holds 0.0 at index 0, expected 1.0 (two)."
    named = replace(TWO, parts=("the mean", "the variance"))
    assert said(lambda: swapped, named) == "the variance holds 0.0 at index 0, expected 1.0 (two)."
    on_ranks = replace(named, with_comm=True, arguments=[()] * 2, expected=[(np.zeros(2), np.ones(2))] * 2)
    assert said(lambda comm: swapped, on_ranks).startswith("on rank 0, the variance holds 0.0 at index 0, expected 1.0")


def test_a_list_of_what_several_calls_returned_says_which_call_it_was() -> None:
    case = Case("3 ages", [(0, 1)], [[0, 2]], with_comm=False, harness=each, calls=("for age 0", "for age 1"))
    assert said(lambda age: age, case) == "your function returned 1 for age 1, expected 2 (3 ages)."


def each(function, *ages) -> list:
    return [function(age) for age in ages]


def test_of_two_calls_in_a_row_it_says_which() -> None:
    first, second = Case("one", [(1,)], [1], with_comm=False), Case("two", [(2,)], [2], with_comm=False)
    kept: list[int] = []

    def remembers(number):
        kept.append(number)
        return kept[0]

    found = verdict(remembers, in_a_row(first, second))
    assert found.case_key == AFTER_ANOTHER_CALL
    assert "your function returned 1 in its second call, expected 2" in str(found)


def test_an_argument_is_called_as_the_function_calls_it() -> None:
    case = Case("a vector", [(np.zeros(2),)], expected_arguments=[{0: np.ones(2)}], with_comm=False)
    assert said(lambda weights: None, case) == "`weights` holds 0.0 at index 0, expected 1.0 (a vector)."
    assert said(lambda comm, w: None, replace(case, with_comm=True)).startswith("rank 0's `w` holds 0.0 at index 0")

    def empties(numbers):
        numbers.clear()

    lists = Case("a list", [([1],)], with_comm=False)
    changed = "your function changed its argument `numbers`, which the caller still needs unchanged"
    assert said(empties, lists) == f"{changed} (a list)."
    assert said(empties, replace(lists, harness=hands_on)) == f"{changed} (a list)."
    again = in_a_row(replace(lists, expected=[None]), replace(lists, expected=[None]))
    assert f"{changed} in call 1 of your function" in said(empties, again)


def hands_on(function, *given) -> object:
    return function(*given)


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (
            lambda age: 0.5,
            Kind.NO_ERROR,
            "your function returned 0.5; for these arguments, the docstring promises a Val",
        ),
        (lambda age: {}[age], Kind.OTHER_ERROR, "your function raised KeyError: -1, line "),
        (lambda age: int("one"), None, "✓"),
    ],
)
def test_a_promised_error_is_tried(function, kind, words) -> None:
    found = verdict(function, rejected("age -1", (-1,), "ValueError"))
    assert (found.finding.kind if found.finding else None) == kind and words in str(found)


def test_an_error_may_have_to_say_something() -> None:
    [case] = rejections("age", [(-1,)], "ValueError")
    strict = replace(case, expected=[Raises("ValueError", has_message=True)])

    def is_silent(age):
        raise ValueError

    assert verdict(is_silent, case).passed
    assert "your function raised ValueError without a message, line " in said(is_silent, strict)


def test_two_wrong_errors_are_alike_whatever_they_say() -> None:
    first, second = Raises("KeyError", True, message="a"), Raises("KeyError", True, message="b", line="line 3")
    assert difference(0, first, second) is None and difference(0, Raises("", returned="1"), Raises("")) is None
    assert difference(0, first, Raises("")).kind == Kind.OTHER_ERROR


@pytest.mark.parametrize(
    ("got", "expected", "remark"),
    [
        (1 + 3e-8, 1.0, "The two numbers differ from the 8th digit on. Was this one computed in float32?"),
        (1 + 3e-4, 1.0, ""),
        (np.array([np.inf], "f2"), np.array([3.0], "f2"), "The largest number that fits into float16 is 65,504."),
        (np.array([1.0 + 2e-7]), np.array([1.0]), "The two numbers differ from the 7th digit on. Was this one comput"),
        (np.array([1.0 + 2e-4], "f4"), np.array([1.0], "f4"), ""),
    ],
)
def test_what_may_explain_a_number_is_said(got, expected, remark) -> None:
    text = text_of(difference(0, got, expected, 1e-12), "a case")
    assert text.partition("(a case).")[2].strip().startswith(remark) and text.count(".") >= text.count("(a case).")
    assert bool(remark) == (not text.endswith("(a case)."))


def test_a_whole_report_names_its_case_and_what_was_lost_comes_last() -> None:
    report = Finding(
        Kind.RANK_ENDED, words="rank 1 was ended by signal 9, SIGKILL.", afterwards="New ranks were started."
    )
    assert text_of(report, "4 ranks") == "rank 1 was ended by signal 9, SIGKILL (4 ranks). New ranks were started."


def test_words_of_an_exercise_may_speak_of_who_did_it() -> None:
    found = Finding(Kind.OWN, 2, key="lost", words="{who} lost {number} examples", values={"number": 3})
    assert text_of(found) == "rank 2 lost 3 examples."
    assert text_of(replace(found, alone=True)) == "your function lost 3 examples."


def test_values_that_hold_arrays_are_described_in_words() -> None:
    assert "expected a tuple of 2 arrays" in said(lambda: None, TWO)
    assert partial(difference, 0)(None, [np.zeros(1)]).kind == Kind.NOTHING
