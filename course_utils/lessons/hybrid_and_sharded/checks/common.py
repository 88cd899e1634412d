"""What the checks of lesson 11 share."""

from collections.abc import Iterable, Iterator

from course_utils.checks.exercise import Case, Outcome
from course_utils.lessons.overlap.checks.scaling_efficiency import error_of

LESSON = "11_hybrid_and_sharded"


def refusals(name: str, calls: Iterable[tuple]) -> Iterator[Case]:
    """A case for each call that the function `name` must refuse with a CourseError."""
    for given in calls:
        words = ", ".join(map(str, given))
        yield Case(f"{name}({words})", [given], ["CourseError"], with_comm=False, harness=error_of)


def must_refuse(case: Case, outcome: Outcome) -> bool:
    """Whether it went wrong where the function was to refuse what it is given."""
    return case.harness is error_of
