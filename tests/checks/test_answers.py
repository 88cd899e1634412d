"""Every right answer passes; every wrong one is rejected, with the question that leads out of its mistake.

The answers stand beside each exercise's check; `course_utils.checks.sample_answers` says in which form.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from course_utils.checks.finding import Kind
from course_utils.checks.judge import Options, verdict_on_these
from course_utils.checks.recognition import recogniser
from course_utils.checks.registry import declared, find, reference
from course_utils.checks.sample_answers import Program, Written
from course_utils.checks.verdict import Result

RIGHT_ONES, QUESTIONS = 1, 2
"""How many right answers to an exercise, and to how many questions one wrong answer, are judged in `make test`."""


def _later(number: int) -> pytest.MarkDecorator:
    """Every tenth answer that `make test` leaves out is judged in `make test-all`, the others once a week."""
    return pytest.mark.weekly if number % 10 else pytest.mark.long


def _right(written: Written) -> Iterator:
    for number, program in enumerate(written.right):
        yield pytest.param(program, marks=_later(number) if number >= RIGHT_ONES else ())


def _wrong(written: Written) -> Iterator:
    """Each program, with the question that leads out of its mistake."""
    seen: set[str] = set()
    for number, (program, question) in enumerate(written.wrong):
        is_long = question.text in seen or len(seen) >= QUESTIONS
        yield pytest.param(program, question, marks=_later(number) if is_long else ())
        seen.add(question.text)


RIGHT = [given for exercise in declared() for given in _right(exercise.written)]
WRONG = [given for exercise in declared() for given in _wrong(exercise.written)]
PATIENCE = 1.5
"""Seconds without progress after which a wrong answer is broken off: shorter than in a learner's check."""


def name_of(given: object) -> str:
    return f"{given.exercise}-{given.name}" if isinstance(given, Program) else "asked"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("program", RIGHT, ids=name_of)
def test_a_right_answer_passes(program, four_ranks):
    verdict = verdict_on_these(find(program.exercise), program.function(), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("program", "question"), WRONG, ids=name_of)
def test_a_wrong_answer_is_rejected_with_the_question_that_fits(program, question, four_ranks):
    exercise = find(program.exercise)
    verdict = verdict_on_these(exercise, program.function(), four_ranks, Options(patience=PATIENCE))
    assert verdict.result == Result.WRONG, f"{verdict}  [COURSE_SEED={verdict.seed}]"
    assert verdict.question == (question.text if question.is_asked else ""), f"{verdict}  [COURSE_SEED={verdict.seed}]"
    if not question.is_asked:
        errors = [verdict.finding.got] if verdict.finding.kind == Kind.RAISED else []
        replies = [SimpleNamespace(error=error) for error in errors]
        seen = SimpleNamespace(finding=verdict.finding, attempt=SimpleNamespace(replies=replies))
        is_found = recogniser(exercise, question.recognised)
        assert is_found(SimpleNamespace(key=verdict.case_key), seen), f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_exercise_has_four_to_six_right_answers_and_eight_wrong_ones(exercise):
    right, wrong = len(exercise.written.right), len(exercise.written.wrong)
    assert 4 <= right <= 6 and wrong >= 8, f"{exercise.name}: {right} right, {wrong} wrong"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_question_belongs_to_a_program_and_is_recognised_somehow(exercise):
    for question in exercise.written.questions:
        assert question.text.endswith("?") and question.programs, f"{exercise.name}: {question.text}"
        if question.recognised:
            assert callable(recogniser(exercise, question.recognised))
        else:
            assert exercise.search_runs, f"{exercise.name}: {question.text} is recognised by nothing"
    for question in exercise.written.unasked:
        assert callable(recogniser(exercise, question.recognised)), f"{exercise.name}: {question.text}"
    spoken_of = {question.recognised.removeprefix("when ") for question in exercise.written.questions}
    assert set(exercise.symptoms) <= spoken_of, f"{exercise.name} speaks of no {set(exercise.symptoms) - spoken_of}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_the_library_itself_is_a_right_answer(exercise, four_ranks):
    verdict = verdict_on_these(exercise, reference(exercise), four_ranks, Options(hide=False))
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_a_call_of_the_library_is_no_answer(exercise, four_ranks):
    module, _, name = exercise.library.partition(":")
    call = (
        f"from {module} import {name} as theirs\n\n\ndef {name}(*given, **named):\n    return theirs(*given, **named)\n"
    )
    answer = Program(name, "calls_the_library", call).function()
    verdict = verdict_on_these(exercise, answer, four_ranks, Options(patience=PATIENCE))
    assert verdict.result == Result.WRONG, str(verdict)
    assert verdict.finding.kind == Kind.RAISED and verdict.finding.got.type == "NotImplementedError", str(verdict)
