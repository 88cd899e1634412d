"""What the recognisers of mistakes in all lessons see in an outcome; none of it asks a learner's object anything."""

from collections.abc import Callable
from typing import Any

from course_utils.checks.compare import difference
from course_utils.checks.exercise import NO_RESULT, Case, Outcome

Recogniser = Callable[[Case, Outcome], bool]


def same(got: Any, wanted: Any, tolerance: float | None = None) -> bool:
    """Whether a result is what is wanted."""
    return got is not NO_RESULT and difference(0, got, wanted, tolerance) is None


def raised(outcome: Outcome, words: str = "") -> bool:
    """Whether a rank raised an error whose type or text has these words in it."""
    errors = [reply.error for reply in outcome.attempt.replies if reply.error]
    return any(words.lower() in f"{error.type} {error.message}".lower() for error in errors)


def error_of(function: Callable, *arguments: object) -> str:
    """The name of the error that the learner's function raises, or "no error"."""
    try:
        function(*arguments)
    except Exception as error:
        if isinstance(error, NotImplementedError):
            raise
        return type(error).__name__
    return "no error"


def says(words: str) -> Recogniser:
    """A recogniser of findings that have these words in them."""
    return lambda case, outcome: words in outcome.wrong


def nothing_returned(case: Case, outcome: Outcome) -> bool:
    """Whether every rank returned None."""
    return all(result is None for result in outcome.results)
