"""What people write for an exercise: how its file is read, and how a mistake is recognised by what it does."""

import importlib
import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from fake_ranks import FakeRanks

from course_utils.checks.compare import is_changed
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.hidden_answer import call_without
from course_utils.checks.judge import Options, verdict_on_these
from course_utils.checks.mistake_search import SearchEnd, alike
from course_utils.checks.recognition import recogniser
from course_utils.checks.sample_answers import Written, exchanged, patched, written_in
from course_utils.checks.verdict import Result, Verdict
from course_utils.errors import CourseError
from course_utils.lessons.first_steps import rank_and_size

FILE = """
# What people write for `twice`

## Right

`plain`: as one would.
```python
def twice(x):
    result = 2 * x
    return result
```

## Wrong
### Is a third of it asked for?
- `thrice` is `plain` with `2 * x` → `3 * x`.

### Which power?
`squared` changes `plain`:
```diff
-    result = 2 * x
+    result = x
+    result = result * x
```

`to_the_x` is `plain` with `2 * x` → `x**x`. Like a square, for 2.

### Where is it?
Recognised when nothing is returned.
- `silent` is `plain` without `return result`.
- `silent_too` is `plain` with `return result` → `return None`.

## Rejected without a question

### The sign is lost

Recognised by `value`, expected `6`.

`negative` is `plain` with `2 * x` → `-2 * x` and with `return result` → `return -1 * -result`.
"""
THIRD = "Is a third of it asked for?"
COMMON = {"library": "", "number": 1, "minutes": 1, "difficulty": 1, "turn": ""}
PLAIN = "def twice(x):\n    result = 2 * x\n    return result\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "twice.answers.md"
    path.write_text(FILE)
    return path


def test_a_file_is_read_from_top_to_bottom(file) -> None:
    written = written_in(file)
    assert [(one.name, one.idea) for one in written.right] == [("plain", "as one would.")]
    assert [question.text for question in written.questions] == [THIRD, "Which power?", "Where is it?"]
    assert [question.recognised for question in written.questions] == ["", "", "when nothing is returned"]
    assert written.program("thrice").source == PLAIN.replace("2 * x", "3 * x")
    assert written.program("squared").source == PLAIN.replace("2 * x", "x\n    result = result * x")
    assert written.program("silent").source == PLAIN.replace("    return result\n", "")
    assert [program.name for program in written.questions[2].programs] == ["silent", "silent_too"]
    assert written.program("to_the_x").idea == "Like a square, for 2."
    assert written.program("negative").function()(3) == -6
    program, question = written.wrong[-1]
    assert (program.name, question.text, question.is_asked) == ("negative", "The sign is lost", False)
    assert all(question.is_asked for _, question in written.wrong[:-1])
    with pytest.raises(CourseError, match="Did you mean 'thrice'"):
        written.program("thrise")


def test_no_file_is_an_exercise_for_which_nobody_has_written(tmp_path) -> None:
    assert written_in(tmp_path / "new.answers.md") == Written()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("`2 * x` → `3 * x`", "`4 * x` → `3 * x`", "line 15: `thrice`: `4 \\* x` stands nowhere"),
        ("`2 * x` → `3 * x`", "`result` → `3 * x`", "`result` stands at more than one place"),
        ("`thrice` is `plain`", "`thrice` is `plane`", "neither written whole here nor right. Did you mean 'plain'"),
        ("-    result = 2 * x", "-    result = 4 * x", "These lines stand nowhere"),
        ("`to_the_x` is", "`thrice` is", "two programs are called `thrice`"),
        ("## Wrong", "## Wrongly", "no part is called 'Wrongly'"),
        ("    return result\n```", "    return result\n", "this block"),
        ("`thrice` is `plain` with", "`thrice` is `plain`, but with", "expected `name` is `base` with"),
    ],
)
def test_a_slip_in_a_file_is_said_with_its_place(file, old, new, said) -> None:
    file.write_text(FILE.replace(old, new, 1))
    with pytest.raises(CourseError, match=said):
        written_in(file)


def test_a_change_of_lines_goes_on_behind_the_one_before() -> None:
    assert patched("a\nb\na\nc\n", " b\n-a\n+d\n") == "a\nb\nd\nc\n"
    assert patched("a\nb\nc\n", "-a\n@@\n c\n+d\n") == "b\nc\nd\n"
    with pytest.raises(CourseError, match="more than one place"):
        patched("a\nb\na\n", "-a\n")


def test_words_are_exchanged_one_after_the_other() -> None:
    assert exchanged("a = b\nc()\n", "with `a` → `d`, with `b` → `e` and without `c()`") == "d = e\n"


def test_a_line_more_is_indented_like_its_neighbour_or_like_what_is_inside_it() -> None:
    loop = "for a in b:\n    c()\n"
    assert exchanged(loop, "with `d()` before `c()`") == "for a in b:\n    d()\n    c()\n"
    assert exchanged(loop, "with `d()` after `c()`") == "for a in b:\n    c()\n    d()\n"
    assert exchanged(loop, "with `d()` after `for a in b:`") == "for a in b:\n    d()\n    c()\n"
    assert exchanged(loop, "with `d()` before `for a in b:`") == "d()\n" + loop
    assert exchanged("a\nb\n", "without `a` and with `a` after `b`") == "b\na\n"
    with pytest.raises(CourseError, match="`d` stands nowhere"):
        exchanged(loop, "with `c` after `d`")


# --- recognised by what it does ---------------------------------------------------------------------------------------


def exercise(file, numbers=(2, 3), **changes) -> Exercise:
    keys = {2: "two"}
    cases = [
        Case(f"the number {number}", [(number,)], [2 * number], with_comm=False, key=keys.get(number, ""))
        for number in numbers
    ]
    return Exercise(
        library="",
        number=1,
        minutes=1,
        difficulty=1,
        turn="",
        cases=lambda *_: cases,
        name="twice",
        file=file,
        **changes,
    )


def judged(function, exercise: Exercise, ranks: FakeRanks | None = None) -> Verdict:
    verdict = verdict_on_these(exercise, function, ranks or FakeRanks(1), Options(seed=1, hide=False))
    assert verdict.result == Result.WRONG
    return verdict


def asked(function, exercise: Exercise) -> str:
    return judged(function, exercise).question


def test_who_does_what_a_program_does_is_asked_its_question_however_it_is_written(file) -> None:
    assert asked(lambda x: x + x + x, exercise(file)) == THIRD
    assert asked(lambda x: sum([x] * x), exercise(file)) == "Which power?"


def test_the_order_decides_where_two_fit(file) -> None:
    assert asked(lambda x: x**x, exercise(file)) == "Which power?"


def test_a_program_that_fails_where_the_answer_passed_is_not_meant(file) -> None:
    assert asked(lambda x: {2: 4, 3: 9}[x], exercise(file)) == "Which power?", "both give 4 for 2, and 9 for 3"
    assert asked(lambda x: {2: 4, 5: 10, 3: 9}[x], exercise(file, (2, 5, 3))) == "", "a square gives 25 for 5"


def test_no_program_is_run_where_none_may_be(file) -> None:
    verdict = judged(lambda x: 3 * x, exercise(file, search_runs=0))
    assert (verdict.question, verdict.searched.runs, verdict.searched.ended) == ("", 0, None)


def test_a_search_that_a_limit_ends_says_so(file) -> None:
    verdict = judged(lambda x: x + 17, exercise(file, search_runs=2))
    assert verdict.question == "" and verdict.searched.ended == SearchEnd.LIMIT
    assert "The search for the mistake stopped after 2 runs" in str(verdict)


@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_the_question_does_not_depend_on_the_numbers_of_the_check(file, number) -> None:
    """Whatever was drawn for the check, answer and programs are compared on numbers of a fixed seed."""

    def cases(rng, _):
        drawn = int(rng.integers(3, 9))
        return [Case(f"the number {drawn}", [(drawn,)], [2 * drawn], with_comm=False)]

    drawn_anew = replace(exercise(file), cases=cases)
    options = Options(seed=number, hide=False)
    verdict = verdict_on_these(drawn_anew, lambda x: x * x, FakeRanks(1), options)
    assert verdict.question == "Which power?"


def test_findings_are_compared_without_their_times() -> None:
    def outcome(**changes):
        finding = Finding(Kind.OWN, key="slow", words="{times}", measured={"times": 1.0})
        case = Case("", [()], [1], with_comm=False, judge=lambda _: None)
        attempt = SimpleNamespace(replies=[])
        return SimpleNamespace(case=case, attempt=attempt, results=[1], finding=replace(finding, **changes))

    assert alike(outcome(), outcome(measured={"times": 2.0}))
    assert not alike(outcome(), outcome(key="late"))
    assert not alike(outcome(), outcome(values={"number": 2}))


def test_an_error_of_the_same_kind_is_the_same_mistake(file) -> None:
    file.write_text(FILE.replace("→ `3 * x`", "→ `x / 0`"))
    assert asked(lambda x: 1 % 0, exercise(file)) == THIRD
    assert asked(lambda x: [][x], exercise(file)) == ""


@pytest.mark.parametrize(
    "recognised",
    [
        "by `value`, expected `4`",
        "by `value` or `type` on rank 0, got `5`",
        "by anything",
        "in the case `two`",
        "when it is five",
    ],
)
def test_what_no_program_shows_is_seen_in_the_outcome(file, recognised) -> None:
    file.write_text(FILE.replace("when nothing is returned", recognised))
    five = {"it is five": lambda case, outcome: outcome.results == [5]}
    assert asked(lambda x: 5, exercise(file, symptoms=five)) == "Where is it?"


def test_a_case_asks_nothing_where_the_result_is_right_by_luck(file) -> None:
    sees = recogniser(exercise(file), "in the case `two`")
    case = SimpleNamespace(key="two")
    assert sees(case, SimpleNamespace(finding=Finding(Kind.VALUE, 0)))
    assert not sees(case, SimpleNamespace(finding=Finding(Kind.BY_LUCK)))


@pytest.mark.parametrize(
    ("line", "finding", "fits"),
    [
        ("by `dtype`", Finding(Kind.DTYPE), True),
        ("by `dtype`", Finding(Kind.SHAPE), False),
        ("by `late-bucket`", Finding(Kind.OWN, key="late-bucket"), True),
        ("by anything in `y`", Finding(Kind.VALUE, where=("y", 0)), True),
        ("by anything in `y`", Finding(Kind.VALUE, where=("x",)), False),
        ("by `value` in `3`", Finding(Kind.VALUE, index=(3, 0)), True),
        ("by `type`, expected `list`", Finding(Kind.TYPE, got=1, expected=[]), True),
        ("by `shape`, got `(2,)`", Finding(Kind.SHAPE, got=(2,), expected=(3,)), True),
        ("by `value` on rank 1", Finding(Kind.VALUE, 0), False),
        ("by `value`", None, False),
    ],
)
def test_a_line_of_a_file_is_compared_with_the_fields_of_a_finding(file, line, finding, fits) -> None:
    assert recogniser(exercise(file), line)(None, SimpleNamespace(finding=finding)) == fits


def test_an_error_is_recognised_by_its_type_or_text(file) -> None:
    file.write_text(FILE.replace("when nothing is returned", "by the error `no such rank`"))

    def raises(x):
        raise ValueError("no such rank: 7")

    assert asked(raises, exercise(file)) == "Where is it?"


def test_a_symptom_that_nobody_knows_is_said(file) -> None:
    with pytest.raises(CourseError, match="Did you mean 'it hangs'"):
        recogniser(exercise(file), "when it hang")
    with pytest.raises(CourseError, match="what is"):
        recogniser(exercise(file), "by magic")


# --- arguments that stay the caller's ---------------------------------------------------------------------------------


@dataclass
class Box:
    inside: list = field(default_factory=list)


class Pair(NamedTuple):
    one: int
    more: list


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.ones(3), np.array([1.0, 1.0, 1.0 + 1e-15])),
        ([1, [2, 3]], [1, [2, 4]]),
        ([1, 2], [1]),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1}),
        (Box([1]), Box([])),
        (Pair(1, [2]), Pair(1, [])),
        (1.0, "1.0"),
    ],
)
def test_a_change_is_seen_however_deep(before, after) -> None:
    assert is_changed(before, after) and not is_changed(before, before)


def test_objects_that_cannot_be_compared_count_as_unchanged() -> None:
    assert not is_changed(object(), object())
    assert not is_changed(float("nan"), float("nan"))


def test_an_argument_that_was_changed_is_named_unless_it_may_be() -> None:
    def emptied(comm, numbers):
        total = sum(numbers)
        numbers.clear()
        return total

    case = Case("one rank", [([1, 2],)], [3])
    settings = dict(library="", number=1, minutes=1, difficulty=1, turn="")
    strict, free = (
        Exercise(cases=lambda *_, one=one: [one], **settings) for one in (case, replace(case, may_change=[0]))
    )
    options = Options(seed=1, hide=False)
    verdict = verdict_on_these(strict, emptied, FakeRanks(1), options)
    assert verdict.finding == Finding(Kind.ARGUMENT_CHANGED, 0, (0,))
    assert "rank 0 changed its argument `numbers`, which the caller still needs unchanged (one rank)." in str(verdict)
    assert verdict_on_these(free, emptied, FakeRanks(1), options).passed


# --- the course's own answer ------------------------------------------------------------------------------------------


class Comm:
    rank = 3


def test_the_courses_own_answer_raises_meanwhile_under_every_name_and_is_back_afterwards() -> None:
    theirs = rank_and_size.rank_squared
    place = f"{rank_and_size.__name__}:rank_squared"
    with pytest.raises(NotImplementedError, match="own rank_squared is hidden"):
        call_without([place], theirs, Comm())
    assert theirs(Comm()) == 9
    assert call_without([place], lambda comm: comm.rank + 1, Comm()) == 4


def test_it_raises_also_where_its_module_is_imported_meanwhile_and_the_check_does_not_import_it(
    tmp_path, monkeypatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imports_it():
        from slow_to_import import answer

        return answer()

    assert call_without(["slow_to_import:answer"], lambda: "slow_to_import" in sys.modules) is False
    with pytest.raises(NotImplementedError, match="own answer is hidden"):
        call_without(["slow_to_import:answer"], imports_it)
    assert imports_it() == 42
    assert importlib.reload(sys.modules["slow_to_import"]).answer() == 42
