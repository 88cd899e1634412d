"""Run cases on the ranks, and find what is wrong with what each gave."""

import contextlib
import functools
import inspect
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from course_utils.checks.cases import calls_twice, harness_of
from course_utils.checks.compare import difference, is_changed
from course_utils.checks.exercise import NO_RESULT, Case, Outcome
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.hidden_answer import call_without
from course_utils.ranks.interface import LIMIT, PATIENCE, RanksInterface
from course_utils.ranks.run import Attempt
from course_utils.trace.events import unmatched_receive

Runner = Callable[[Iterable[tuple[Case, Callable]]], Iterator[Outcome]]
"""Runs cases, each with a function, in order."""
_TOGETHER = 16
"""How many calls that need one rank alone travel to it at once: each journey costs more than most calls."""


def outcomes(
    runs: Iterable[tuple[Case, Callable]],
    ranks: RanksInterface,
    *,
    patience: float = PATIENCE,
    limit: float = LIMIT,
    hidden: Sequence[str] = (),
) -> Iterator[Outcome]:
    """Run each case with its function, in order, and yield what came of it and what is wrong with it.

    Args:
        runs: cases, each with the function to call. Those that need one rank alone are sent several together.
        ranks: the running ranks.
        patience: seconds without progress after which the ranks are taken to hang.
        limit: seconds of computing after which a case is ended in any event.
        hidden: functions that raise meanwhile, "module:function".
    """
    coming = iter(runs)
    waiting: deque[tuple[Case, Callable]] = deque()
    while True:
        waiting.extend(itertools.islice(coming, _TOGETHER - len(waiting)))
        if not waiting:
            return
        for attempt in _attempts(waiting, ranks, hidden, patience, limit):
            yield outcome_of(*waiting.popleft(), attempt)


def _attempts(
    runs: Iterable[tuple[Case, Callable]], ranks: RanksInterface, hidden: Sequence[str], patience: float, limit: float
) -> list[Attempt]:
    """The attempts of as many of these runs as could be made together; at least of the first."""
    together = list(itertools.takewhile(lambda run: run[0].without_ranks and not run[0].before, runs))
    if len(together) > 1:
        tasks = [(_called(case, function, hidden), case.arguments[0]) for case, function in together]
        if done := ranks.attempt_each(tasks, patience=patience, limit=limit):
            return done
    case, function = next(iter(runs))
    return [
        ranks.attempt(
            _called(case, function, hidden),
            _arguments(case),
            with_comm=case.with_comm and case.backend is None,
            backend=case.backend,
            patience=patience,
            limit=limit * case.number_of_calls,
        )
    ]


def _called(case: Case, function: Callable, hidden: Sequence[str]) -> Callable:
    called = functools.partial(case.harness, function) if case.harness else function
    if case.before:
        called = functools.partial(_after_other_calls, function, called, case.with_comm and case.backend is None)
    return functools.partial(call_without, hidden, called) if hidden else called


def _arguments(case: Case) -> list[tuple]:
    """What each rank is given: the case's arguments, and behind them the calls that come before."""
    if not case.before:
        return list(case.arguments)
    return [(*given, calls) for given, calls in zip(case.arguments, case.before, strict=True)]


def _after_other_calls(function: Callable, called: Callable, gets_comm: bool, *given: Any) -> Any:
    """Runs on a rank: the calls that come before, with the same communicator, then that of the case."""
    *arguments, before = given
    comm = arguments[:1] if gets_comm else []
    for harness, inputs in before:
        harness(function, *comm, *deepcopy(inputs))  # some are those of the case, too
    return called(*arguments)


def outcome_of(case: Case, function: Callable, attempt: Attempt) -> Outcome:
    """What an attempt at a case gave, and what is wrong with it."""
    replies = attempt.replies
    results = [reply.value if reply.kind == "returned" else NO_RESULT for reply in replies]
    after = [
        tuple(reply.arguments[: len(given)]) if len(reply.arguments) >= len(given) else given
        for reply, given in zip(replies, case.arguments, strict=True)
    ]
    outcome = Outcome(case, attempt, results, after, attempt.run)
    found = _trouble(attempt) or _wrong_values(outcome, function) or _changed_argument(outcome, function)
    found = found or _wrong_cost(outcome)
    if not found and case.judge:
        found = case.judge(outcome)
    found = found or _never_waited_for(attempt) or _bypassed(outcome) or _miscounted(outcome)
    return replace(outcome, finding=found and replace(found, **_names_of(case)))


def _names_of(case: Case) -> dict[str, Any]:
    """How sentences on a finding in this case speak of what it is about."""
    return {"parts": case.parts, "calls": case.calls, "alone": case.without_ranks}


def _trouble(attempt: Attempt) -> Finding | None:
    """What kept the ranks from their end: the first error, or why the call was broken off."""
    for reply in attempt.replies:
        if reply.kind == "raised" and reply.error:
            return Finding(Kind.RAISED, reply.rank, got=reply.error)
    if not attempt.trouble:
        return None
    return Finding(Kind(attempt.ending.value), words=attempt.trouble, afterwards=attempt.afterwards)


def _wrong_values(outcome: Outcome, function: Callable) -> Finding | None:
    case = outcome.case
    for rank in range(outcome.world_size):
        if case.expected is not None:
            found = difference(rank, outcome.results[rank], case.expected[rank], case.tolerance)
            if found:
                return found
        for index, expected in (case.expected_arguments[rank] if case.expected_arguments else {}).items():
            found = difference(rank, outcome.arguments[rank][index], expected, case.tolerance)
            if found:
                return replace(found, argument=_argument_name(function, case, index))
    return None


def _changed_argument(outcome: Outcome, function: Callable) -> Finding | None:
    case = outcome.case
    for rank, (before, after) in enumerate(zip(case.arguments, outcome.arguments, strict=True)):
        free = {*case.may_change, *(case.expected_arguments[rank] if case.expected_arguments else ())}
        for index, (was, is_now) in enumerate(zip(before, after, strict=True)):
            if index in free or not is_changed(was, is_now):
                continue
            if not calls_twice(case):
                return changed_argument(rank, index, _argument_name(function, case, index))
            inside = next(i for i, both in enumerate(zip(was, is_now, strict=False)) if is_changed(*both))
            name = _argument_name(function, case, inside)
            return replace(changed_argument(rank, inside, name), context=f" in call {index + 1} of your function")
    return None


def changed_argument(rank: int, argument: str | int, name: str = "") -> Finding:
    """The finding that a rank changed an argument which was to stay.

    Args:
        argument: its name or its index, by which two findings are compared.
        name: what the learner's function calls it.
    """
    return Finding(Kind.ARGUMENT_CHANGED, rank, (argument,), argument=name or str(argument))


def _argument_name(function: Callable, case: Case, index: int) -> str:
    """What the learner's function calls an argument of the case; "argument 2" where that cannot be known."""
    own, harness = _parameters(function), harness_of(case)
    comm = case.with_comm and not case.backend
    names = _parameters(harness)[1 + comm :] if harness else []
    of_harness = names[index] if index < len(names) else ""
    if of_harness in own or index + comm >= len(own):
        return of_harness or _unnamed(index)
    return own[index + comm]  # the harness hands on what it is given, under another name


def _parameters(function: Callable) -> list[str]:
    with contextlib.suppress(TypeError, ValueError):
        parameters = inspect.signature(function).parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]
    return []


def _unnamed(index: int) -> str:
    return f"argument {index + 1}"


def _wrong_cost(outcome: Outcome) -> Finding | None:
    cost, run = outcome.case.cost, outcome.run
    if cost is None or run is None:
        return None
    for reply in outcome.attempt.replies:
        for call in reply.uncounted:
            return Finding(Kind.UNCOUNTED, reply.rank, words=call)
    bounds = ((Kind.ROUNDS, run.rounds, cost.rounds), (Kind.MESSAGES, run.messages, cost.messages))
    for kind, counted, bound in bounds:
        if bound is not None and counted > bound:
            return Finding(kind, got=counted, expected=bound)
    if cost.bytes_per_rank is not None:
        busiest = max(range(outcome.world_size), key=run.bytes_per_rank.__getitem__)
        if run.bytes_per_rank[busiest] > cost.bytes_per_rank:
            return Finding(Kind.BYTES, busiest, got=run.bytes_per_rank[busiest], expected=cost.bytes_per_rank)
    if cost.collectives is not None and run.collectives != cost.collectives:
        return Finding(Kind.COLLECTIVES, 0, got=run.collectives, expected=cost.collectives)
    return None


def _never_waited_for(attempt: Attempt) -> Finding | None:
    """An operation that nobody waits for may never happen (MPI 4.1, section 3.7.3), and its buffer is not yet free."""
    for reply in attempt.replies:
        for request in reply.never_waited_for:
            return Finding(Kind.NEVER_WAITED_FOR, reply.rank, words=request)
    return None


def _bypassed(outcome: Outcome) -> Finding | None:
    """A way by which numbers went from rank to rank, or into the record of them, that is not the communicator's."""
    for reply in outcome.attempt.replies:
        for used in reply.bypassed if outcome.run else ():
            return Finding(Kind.BYPASSED, reply.rank, words=used)
    return None


def _miscounted(outcome: Outcome) -> Finding | None:
    """A message that its receiver has recorded and its sender has not, so that the sender's count is too low."""
    run, replies = outcome.run, outcome.attempt.replies
    if run is None or any(reply.uncounted for reply in replies):
        return None
    got = unmatched_receive(run.events)
    return Finding(Kind.MISCOUNTED, got.rank, got=got.bytes, values={"sender": got.peer}) if got else None


def by_luck(outcome: Outcome) -> Outcome | None:
    """The outcome as a wrong one, where it came out well and, on another day or with other sizes, would not have."""
    notes = outcome.run.notes if outcome.run else []
    return replace(outcome, finding=Finding(Kind.BY_LUCK, words=notes[0])) if notes else None
