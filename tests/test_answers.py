"""Every right answer passes; every wrong one is rejected, with the question that leads out of its mistake.

The answers stand beside each exercise's check; `course_utils.checks.written` says in which form.
"""

from collections.abc import Iterator

import pytest

from course_utils.checks.behaviour import recogniser
from course_utils.checks.judge import judge
from course_utils.checks.registry import declared, find, reference
from course_utils.checks.written import Program, Written

RIGHT_ONES, QUESTIONS = 2, 4
"""How many right answers to an exercise, and to how many questions one wrong answer, are judged in `make test`."""


def _later(number: int) -> pytest.MarkDecorator:
    """Every third answer that `make test` leaves out is judged in `make test-all`, the others once a week."""
    return pytest.mark.weekly if number % 3 else pytest.mark.long


def _right(written: Written) -> Iterator:
    for number, program in enumerate(written.right):
        yield pytest.param(program, marks=_later(number) if number >= RIGHT_ONES else ())


def _wrong(written: Written) -> Iterator:
    """Each program, with the words that it is told."""
    told: set[str] = set()
    for number, (program, words) in enumerate(written.wrong):
        is_long = words in told or len(told) >= QUESTIONS
        yield pytest.param(program, words, marks=_later(number) if is_long else ())
        told.add(words)


RIGHT = [given for exercise in declared() for given in _right(exercise.written)]
WRONG = [given for exercise in declared() for given in _wrong(exercise.written)]
PATIENCE, LIMIT = 1.5, 12.0
"""Seconds without progress, and in all, after which a wrong answer is broken off: shorter than a learner's checks."""
UNHURRIED = 60.0
"""Seconds for the search for a mistake: on a busy machine a question must not depend on the clock."""


def name_of(given: object) -> str:
    return f"{given.exercise}-{given.name}" if isinstance(given, Program) else "asked"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("program", RIGHT, ids=name_of)
def test_a_right_answer_passes(program, four_ranks):
    verdict = judge(find(program.exercise), program.function(), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("program", "words"), WRONG, ids=name_of)
def test_a_wrong_answer_is_rejected_with_the_question_that_fits(program, words, four_ranks):
    exercise = find(program.exercise)
    limit = exercise.limit if exercise.needs_torch else LIMIT
    verdict = judge(exercise, program.function(), four_ranks, patience=PATIENCE, limit=limit, seconds=UNHURRIED)
    assert verdict.mark == "✗", f"{verdict}  [COURSE_SEED={verdict.seed}]"
    assert words in str(verdict), f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_exercise_has_four_right_answers_and_eight_wrong_ones(exercise):
    right, wrong = len(exercise.written.right), len(exercise.written.wrong)
    assert right >= 4 and wrong >= 8, f"{exercise.name}: {right} right, {wrong} wrong"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_question_belongs_to_a_program_and_is_recognised_somehow(exercise):
    for question in exercise.written.questions:
        assert question.text.endswith("?") and question.programs, f"{exercise.name}: {question.text}"
        if question.recognised:
            assert callable(recogniser(exercise, question))
    spoken_of = {question.recognised.removeprefix("when ") for question in exercise.written.questions}
    assert set(exercise.symptoms) <= spoken_of, f"{exercise.name} speaks of no {set(exercise.symptoms) - spoken_of}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_the_library_itself_is_a_right_answer(exercise, four_ranks):
    verdict = judge(exercise, reference(exercise), four_ranks, hide=False)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_a_call_of_the_library_is_no_answer(exercise, four_ranks):
    module, _, name = exercise.library.partition(":")
    call = (
        f"from {module} import {name} as theirs\n\n\ndef {name}(*given, **named):\n    return theirs(*given, **named)\n"
    )
    verdict = judge(exercise, Program(name, "calls_the_library", call).function(), four_ranks, patience=PATIENCE)
    assert verdict.mark == "✗" and f"the course's own {name} is hidden" in str(verdict), str(verdict)
