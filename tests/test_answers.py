"""Every right answer passes; every wrong one is refused, with the words that its file says.

An answer is a file under `answers/<exercise>/right` or `/wrong` that defines the function, imports and all. A wrong
one's docstring begins with `Refused with: <a piece of the verdict's line>`.
"""

import ast
import importlib
import sys
import types
from pathlib import Path

import cloudpickle
import pytest

from course_utils.checks.judging import judge
from course_utils.checks.registry import LESSON_MODULES, exercises_of, find
from course_utils.syllabus import LESSONS

FOLDER = Path(__file__).parent / "answers"
RIGHT = sorted(FOLDER.glob("*/right/*.py"))
WRONG = sorted(FOLDER.glob("*/wrong/*.py"))
REFUSED = "Refused with: "


def name_of(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.stem}"


def load(path: Path):
    """The function that the file defines, in a module of its own that travels to the ranks by value."""
    exercise = path.parent.parent.name
    module = types.ModuleType(f"answer_{exercise}_{path.parent.name}_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return getattr(module, exercise)


def refused_with(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = docstring.splitlines()[0] if docstring else ""
    assert first.startswith(REFUSED), f"{path}: the docstring must begin with {REFUSED!r}"
    return first.removeprefix(REFUSED).strip()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", RIGHT, ids=name_of)
def test_a_right_answer_passes(path, four_ranks):
    verdict = judge(find(path.parent.parent.name), load(path), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", WRONG, ids=name_of)
def test_a_wrong_answer_is_refused_with_the_hint_that_fits(path, four_ranks):
    verdict = judge(find(path.parent.parent.name), load(path), four_ranks, patience=1.5)
    assert verdict.mark == "✗", f"{verdict}  [COURSE_SEED={verdict.seed}]"
    assert refused_with(path) in str(verdict), f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.parametrize("stem", LESSON_MODULES)
def test_every_exercise_has_three_right_answers_and_eight_wrong_ones(stem):
    for exercise in exercises_of(stem):
        counts = [len(list((FOLDER / exercise.name / kind).glob("*.py"))) for kind in ("right", "wrong")]
        assert counts[0] >= 3 and counts[1] >= 8, f"{exercise.name}: {counts[0]} right, {counts[1]} wrong"


@pytest.mark.parametrize("stem", LESSON_MODULES)
def test_every_question_is_asked_by_some_wrong_answer(stem):
    for exercise in exercises_of(stem):
        asked = " ".join(refused_with(path) for path in (FOLDER / exercise.name / "wrong").glob("*.py"))
        for mistake in exercise.mistakes:
            assert mistake.question in asked, f"{exercise.name}: no wrong answer is refused with {mistake.question!r}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("stem", "name"),
    [(lesson.stem, name) for lesson in LESSONS if lesson.stem in LESSON_MODULES for name in lesson.exercises],
)
def test_the_library_itself_is_a_right_answer(stem, name, four_ranks):
    module = importlib.import_module(f"course_utils.{stem[3:]}")
    verdict = judge(find(name), getattr(module, name), four_ranks)
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"
