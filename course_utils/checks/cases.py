"""Cases that exercises of several lessons make: fewer ranks, calls after others, and calls that are to be rejected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case
from course_utils.checks.symptoms import error_of

AFTER_ANOTHER_CALL = "after-another-call"
"""The key of cases in which the function was called before."""


REJECTED = "rejected"
"""The key of calls that are to be rejected."""


def fewer(world_size: int) -> list[int]:
    """Numbers of ranks below the largest, not all of them where there are many."""
    return list(range(min(world_size - 1, 7), 0, -1))


def called_twice(harness: Callable, function: Callable, *given: Any) -> Any:
    """What the harness returns when the function was called before, with the arguments that stand in the last one."""
    *arguments, before = given
    comm = arguments[: len(arguments) - len(before)]  # the same one, where there is one
    harness(function, *comm, *deepcopy(before))
    return harness(function, *arguments)


def after_another_call(case: Case, before: Sequence[tuple] = ()) -> Case:
    """The same case after a call on every rank of which nothing may stay. What the two cost is not looked at.

    Args:
        before: the arguments of that call; by itself the case's own, with other numbers in arrays and tensors.
    """
    first = before or [tuple(map(_other_numbers, given)) for given in case.arguments]
    return replace(
        case,
        label=case.label if before else f"{case.label}, after another call",
        key=case.key if before else AFTER_ANOTHER_CALL,
        arguments=[(*now, earlier) for now, earlier in zip(case.arguments, first, strict=True)],
        harness=partial(called_twice, case.harness or called),
        cost=None,
        judge=None,
    )


def _other_numbers(argument: Any) -> Any:
    is_tensor = hasattr(argument, "requires_grad")  # torch's; it need not be imported for this
    return 1 - 2 * argument if is_tensor or isinstance(argument, np.ndarray) else argument


def in_a_row(before: Case, case: Case) -> Case:
    """Two cases as two calls: the first plays no part in the second, and what it returned stays as it was.

    Both have the same harness and as many ranks, and expect results. What one call costs and what a judge looks at,
    other cases see to.
    """
    return replace(
        case,
        label=f"{case.label}, after another call",
        key=AFTER_ANOTHER_CALL,
        arguments=list(zip(before.arguments, case.arguments, strict=True)),
        expected=[list(both) for both in zip(before.expected or (), case.expected or (), strict=True)],
        may_change=(0, 1) if case.may_change else (),
        harness=partial(both_calls, case.harness or called),
        cost=None,
        judge=None,
    )


def called(function: Callable, *given: object) -> object:
    """What the learner's function returns: the harness of a case that has none."""
    return function(*given)


def both_calls(harness: Callable, function: Callable, *given: Any) -> list:
    """What a harness returns for one call and for the next, with the same communicator, if there is one."""
    *comm, first, second = given
    return [harness(function, *comm, *first), harness(function, *comm, *second)]


def one_after_another(function: Callable, calls: Iterable[tuple]) -> list:
    """What the learner's function returns in one call after another: none may play a part in the next."""
    return [function(*given) for given in calls]


def rejections(name: str, calls: Iterable[tuple]) -> Iterator[Case]:
    """A case for each call that the function `name` must reject with a CourseError."""
    for given in calls:
        words = ", ".join(map(str, given))
        yield Case(f"{name}({words})", [given], ["CourseError"], with_comm=False, harness=error_of, key=REJECTED)
