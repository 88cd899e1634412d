"""`course.check`: judge a learner's function, keep the verdict, and show it."""

from collections.abc import Callable
from typing import Any

from course_utils.checks import under_nbgrader
from course_utils.checks.compare import describe
from course_utils.checks.executed_cells import not_defined
from course_utils.checks.judge import verdict_on
from course_utils.checks.progress_records import SESSION
from course_utils.checks.registry import find
from course_utils.checks.verdict import Result, Verdict, finding_of
from course_utils.checks.verdict_panel import show
from course_utils.errors import CourseError
from course_utils.ranks import start

_MISSING: Any = object()


def check(name: str, function: Callable = _MISSING) -> None:
    """Run your function and say in one line whether it is right; a notebook shows it as a panel.

    What needs no communicator needs no running ranks. What needs a communicator and NumPy alone runs on virtual ranks
    first, up to 64 of them, then on the running ones. Sizes, dtypes and numbers are fresh on every call.
    ✓ right; ✗ what is wrong, and a question; ○ not begun, or not judged because its cell did not run.

    Args:
        name: of the exercise, in quotes.
        function: yours, without quotes and without parentheses.

    Raises:
        CourseError: there is no such exercise, `function` is none, or only running ranks can judge it and there
            are none; under nbgrader, which reads marks out of errors, also where the verdict is not ✓.
    """
    exercise = find(name)
    _need_function(exercise.name, function)
    with under_nbgrader.stderr_to_stdout():
        if missing := not_defined(function):
            verdict = Verdict(Result.NOT_BEGUN, exercise.name, not_defined=missing)
        else:
            verdict = verdict_on(exercise, function, start.current())
        SESSION.write(exercise=name, lesson=exercise.lesson, mark=verdict.result, text=finding_of(verdict))
        show(verdict, picture=exercise.picture)
    under_nbgrader.insist(verdict)


def _need_function(name: str, function: Any) -> None:
    how = f'course.check("{name}", {name})'
    if function is _MISSING:
        raise CourseError(f"Give the check your function as well: {how}")
    if isinstance(function, str):
        raise CourseError(f"Give the check the function itself, without quotes: {how}")
    if not callable(function):
        raise CourseError(f"{describe(function)} is not a function. Give its name alone, without (): {how}")
