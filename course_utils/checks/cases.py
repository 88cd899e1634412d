"""Cases that exercises of several lessons make: fewer ranks, calls after others, and calls that are to be rejected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from course_utils.checks.compare import describe
from course_utils.checks.exercise import Case
from course_utils.checks.promised_errors import Raises
from course_utils.errors import CourseError
from course_utils.ranks.engine.reply import describe_exception

AFTER_ANOTHER_CALL = "after-another-call"
"""The key of cases in which the function was called before."""


REJECTED = "rejected"
"""The key of calls that are to be rejected."""

EARLIER = 3
"""So many calls may come before that of a case: each makes the check longer."""


def fewer(world_size: int) -> list[int]:
    """Numbers of ranks below the largest, not all of them where there are many."""
    return list(range(min(world_size - 1, 7), 0, -1))


def after_another_call(case: Case, before: Sequence[tuple] = ()) -> Case:
    """The same case after a call on every rank of which nothing may stay. What the two cost is not looked at.

    Args:
        before: the arguments of that call; by itself the case's own, with other numbers in arrays and tensors.
    """
    first = before or [tuple(map(_other_numbers, given)) for given in case.arguments]
    again = _after([replace(case, arguments=first)], case)
    return again if before else replace(again, label=f"{case.label}, after another call", key=AFTER_ANOTHER_CALL)


def after_the_others(cases: Sequence[Case]) -> Iterator[Case]:
    """The last of many cases once more, after others with as many ranks; at most `EARLIER` of them.

    Whatever these leave behind, of any size and on any rank, plays no part in it. Cases that measure time or are to
    be rejected do not come again. On several ranks no judge looks at it, because it would count all calls' messages.
    """
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        if not case.timed and case.key != REJECTED:
            groups.setdefault((len(case.arguments), case.with_comm, case.backend), []).append(case)
    largest = max(groups.values(), key=len, default=[])
    again = [case for case in largest if case.without_ranks or case.expected is not None]
    if again and len(largest) > 1:
        others = [case for case in largest if case is not again[-1]]
        after = _after(others[-EARLIER:], again[-1])
        label = f"{after.label}, after other calls".removeprefix(", ")
        yield replace(after, label=label, key=AFTER_ANOTHER_CALL)


def _after(earlier: Sequence[Case], case: Case) -> Case:
    """A case in which each rank first makes the calls of others. On several ranks, all messages are counted."""
    ranks = range(len(case.arguments))
    calls = [[(each.harness or called, each.arguments[rank]) for each in earlier] for rank in ranks]
    return replace(case, before=calls, cost=None, judge=case.judge if case.without_ranks else None)


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
        calls=("in its first call", "in its second call"),
        harness=partial(both_calls, case.harness or called),
        cost=None,
        judge=None,
    )


def calls_twice(case: Case) -> bool:
    """Whether the case's arguments are those of one call and those of the next."""
    return isinstance(case.harness, partial) and case.harness.func is both_calls


def harness_of(case: Case) -> Callable | None:
    """What calls the learner's function in a case, inside what repeats it; None where the case calls it itself."""
    harness = case.harness.args[0] if isinstance(case.harness, partial) and calls_twice(case) else case.harness
    return None if harness in (called, how_it_ended) else harness


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


def how_it_ended(function: Callable, *arguments: object) -> Raises:
    """Call the learner's function, and tell how that ended. The line that the exercise came with raises as ever."""
    try:
        returned = function(*arguments)
    except Exception as error:
        if isinstance(error, NotImplementedError):
            raise
        known = ("builtins", CourseError.__module__)
        name = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ in known)
        own = describe_exception(error)
        return Raises(name, bool(own.message.strip()), "", own.type, own.message, own.line)
    return Raises("", returned=describe(returned))


def rejected(label: str, given: tuple, error: str = "CourseError", **more: Any) -> Case:
    """A case in which the docstring promises an error.

    Args:
        label: what is special in it, in words.
        given: the arguments of the call.
        error: the name of the error.
        more: fields of the case, in the place of those of a function that needs no ranks.
    """
    fields = {"with_comm": False, "harness": how_it_ended, "key": REJECTED, **more}
    return Case(label, [given], [Raises(error)], **fields)


def rejections(name: str, calls: Iterable[tuple], error: str = "CourseError", **more: Any) -> Iterator[Case]:
    """A case for each call that the function `name` must reject with this error."""
    for given in calls:
        yield rejected(f"{name}({', '.join(map(repr, given))})", given, error, **more)
