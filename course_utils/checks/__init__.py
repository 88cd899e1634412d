"""What a learner types to check an answer: `check`, `hint`, `progress`, `predict`, `measured`."""

from collections.abc import Callable
from typing import Any

from course_utils.checks.predictions import measured, predict
from course_utils.checks.records import SESSION
from course_utils.checks.registry import find
from course_utils.checks.table import Overview, overview
from course_utils.errors import CourseError

__all__ = ["check", "hint", "measured", "predict", "progress"]

_hints_given: dict[str, int] = {}
_MISSING: Any = object()


def check(name: str, function: Callable = _MISSING) -> None:
    """Run your function on the running ranks and say in one line whether it is right.

    Sizes, dtypes and numbers are fresh on every call. ✓ right; ✗ what is wrong, and a question; ○ not begun.

    Args:
        name: of the exercise, in quotes.
        function: yours, without quotes and without parentheses.

    Raises:
        CourseError: there is no such exercise, `function` is none, or no ranks are running.
    """
    from course_utils.checks.judging import judge
    from course_utils.checks.verdict import show
    from course_utils.cluster import current

    exercise = find(name)
    _need_function(exercise.name, function)
    ranks = current()
    if ranks is None:
        raise CourseError("No ranks are running yet. Run `ranks = course.start(4)` first, then this cell again.")
    verdict = judge(exercise, function, ranks)
    SESSION.write(exercise=name, lesson=exercise.lesson, mark=verdict.mark, text=verdict.text)
    show(verdict, picture=exercise.picture)


def hint(name: str) -> None:
    """Print a hint: first a question, the second time nearly the answer."""
    exercise = find(name)
    given = _hints_given.get(name, 0)
    _hints_given[name] = given + 1
    step = min(given, len(exercise.hints) - 1)
    SESSION.write(hint=name, step=step + 1)
    print(exercise.hints[step])
    if step + 1 < len(exercise.hints):
        print(f'(There is one more: run course.hint("{name}") again.)')


def progress() -> Overview:
    """The table of all lessons and exercises, over all notebooks and sessions: what is done, what is next."""
    return overview()


def _need_function(name: str, function: Any) -> None:
    how = f'course.check("{name}", {name})'
    if function is _MISSING:
        raise CourseError(f"Give the check your function as well: {how}")
    if isinstance(function, str):
        raise CourseError(f"Give the check the function itself, without quotes: {how}")
    if not callable(function):
        from course_utils.checks.compare import describe

        raise CourseError(f"{describe(function)} is not a function. Give its name alone, without (): {how}")
