"""Cases that exercises of several lessons make: fewer ranks, calls after others, and calls that are to be rejected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from course_utils.checks.exercise import Case
from course_utils.checks.symptoms import error_of


def fewer(world_size: int) -> list[int]:
    """Numbers of ranks below the largest, not all of them where there are many."""
    return list(range(min(world_size - 1, 7), 0, -1))


def called_twice(function: Callable, *given: object) -> object:
    """What the learner's function returns when it was called before, with the arguments that stand in the last one."""
    *arguments, before = given
    function(*arguments[: len(arguments) - len(before)], *before)  # the communicator, if there is one, is the same
    return function(*arguments)


def after_another_call(case: Case, before: Sequence[tuple]) -> Case:
    """The same case after a call with the arguments `before`, on every rank: nothing of them may stay."""
    arguments = [(*now, earlier) for now, earlier in zip(case.arguments, before, strict=True)]
    return replace(case, arguments=arguments, harness=called_twice)


def one_after_another(function: Callable, calls: Iterable[tuple]) -> list:
    """What the learner's function returns in one call after another: none may play a part in the next."""
    return [function(*given) for given in calls]


def rejections(name: str, calls: Iterable[tuple]) -> Iterator[Case]:
    """A case for each call that the function `name` must reject with a CourseError."""
    for given in calls:
        words = ", ".join(map(str, given))
        yield Case(f"{name}({words})", [given], ["CourseError"], with_comm=False, harness=error_of)
