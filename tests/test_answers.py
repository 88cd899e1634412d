"""Every right answer passes; every wrong one is refused, with the words that its file says.

The answers are the files under `answers/<exercise>/right` and `/wrong`; `workshop.answers` says their form.
"""

from pathlib import Path

import pytest

from course_utils.checks.judge import judge
from course_utils.checks.registry import declared, find, reference
from workshop.answers import answers, exercise_of, load, refused_with

RIGHT, WRONG = answers("right"), answers("wrong")
PATIENCE, LIMIT = 1.5, 12.0
"""Seconds without progress, and in all, after which a wrong answer is broken off: shorter than a learner's checks."""


def name_of(path: Path) -> str:
    return f"{exercise_of(path)}-{path.stem}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", RIGHT, ids=name_of)
def test_a_right_answer_passes(path, four_ranks):
    verdict = judge(find(exercise_of(path)), load(path), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", WRONG, ids=name_of)
def test_a_wrong_answer_is_refused_with_the_hint_that_fits(path, four_ranks):
    exercise = find(exercise_of(path))
    limit = exercise.limit if exercise.needs_torch else LIMIT
    verdict = judge(exercise, load(path), four_ranks, patience=PATIENCE, limit=limit)
    assert verdict.mark == "✗", f"{verdict}  [COURSE_SEED={verdict.seed}]"
    assert refused_with(path) in str(verdict), f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_exercise_has_four_right_answers_and_eight_wrong_ones(exercise):
    counts = [len(answers(kind, exercise.name)) for kind in ("right", "wrong")]
    assert counts[0] >= 4 and counts[1] >= 8, f"{exercise.name}: {counts[0]} right, {counts[1]} wrong"


@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_every_question_is_asked_by_some_wrong_answer(exercise):
    asked = " ".join(refused_with(path) for path in answers("wrong", exercise.name))
    for mistake in exercise.mistakes:
        assert mistake.question in asked, f"{exercise.name}: no wrong answer is refused with {mistake.question!r}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("exercise", declared(), ids=lambda exercise: exercise.name)
def test_the_library_itself_is_a_right_answer(exercise, four_ranks):
    verdict = judge(exercise, reference(exercise), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"
