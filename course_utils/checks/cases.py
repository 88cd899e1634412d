"""Cases that exercises of several lessons make: fewer ranks, calls in a row, and calls that are to be rejected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from course_utils.checks.exercise import Case
from course_utils.checks.symptoms import error_of


def fewer(world_size: int) -> list[int]:
    """Numbers of ranks below the largest, not all of them where there are many."""
    return list(range(min(world_size - 1, 7), 0, -1))


def in_a_row(about: str, calls: Sequence[tuple], expected: Sequence[Any]) -> Case:
    """Several calls in one process: what a call leaves behind must not change the next result."""
    label = f"{about}: {len(calls)} calls in a row, one entry each"
    return Case(label, [tuple(calls)], [list(expected)], with_comm=False, harness=results_of)


def results_of(function: Callable, *calls: tuple) -> list:
    """What the learner's function returns for each of these arguments."""
    return [function(*given) for given in calls]


def rejections(name: str, calls: Iterable[tuple]) -> Iterator[Case]:
    """A case for each call that the function `name` must reject with a CourseError."""
    for given in calls:
        words = ", ".join(map(str, given))
        yield Case(f"{name}({words})", [given], ["CourseError"], with_comm=False, harness=error_of)
