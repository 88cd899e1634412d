"""Run cases on the ranks, and say what each gave: what is wrong with it, if anything is."""

import contextlib
import functools
import inspect
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from course_utils.checks.compare import CHANGED, difference, is_changed
from course_utils.checks.exercise import NO_RESULT, Case, Outcome
from course_utils.checks.own_answer import call_without
from course_utils.words import count

PATIENCE, LIMIT = 3.0, 30.0
BY_LUCK = "the result is right, by luck."
_TOGETHER = 16
"""How many calls that need one rank alone travel to it at once."""


class RanksLike(Protocol):
    """What judging needs of `course_utils.ranks.ranks.Ranks`; a test may bring its own."""

    world_size: int

    def attempt(self, function: Callable, arguments: list[tuple], **options: Any) -> Any:
        """Run function(comm, *arguments[rank]) on each rank; never raises for what the learner did."""

    def attempt_each(self, tasks: list[tuple[Callable, tuple]], **options: Any) -> list:
        """Call functions, each with its arguments, on rank 0 alone; gives back the attempts that came to an end."""


def outcomes(
    runs: Iterable[tuple[Case, Callable]],
    ranks: RanksLike,
    *,
    patience: float = PATIENCE,
    limit: float = LIMIT,
    until: float = math.inf,
    hidden: Sequence[str] = (),
) -> Iterator[Outcome]:
    """What each case gives with its function, in order; `Outcome.wrong` says what is wrong with it.

    Args:
        runs: cases, each with the function to call. Those that need one rank alone are sent several together.
        ranks: the running ranks.
        patience: seconds without progress after which the ranks are taken to hang.
        limit: seconds after which a case is ended in any event.
        until: reading of `time.monotonic` after which no run begins or goes on.
        hidden: functions that raise meanwhile, "module:function".
    """
    coming = iter(runs)
    waiting: deque[tuple[Case, Callable]] = deque()
    while (left := until - time.monotonic()) > 0:
        waiting.extend(itertools.islice(coming, _TOGETHER - len(waiting)))
        if not waiting:
            return
        for attempt in _attempts(waiting, ranks, hidden, patience=patience, limit=min(limit, left)):
            yield outcome_of(*waiting.popleft(), attempt)


def _attempts(
    runs: Iterable[tuple[Case, Callable]], ranks: RanksLike, hidden: Sequence[str], *, patience: float, limit: float
) -> list:
    """The attempts of as many of these runs as could be made together; at least of the first."""
    together = list(itertools.takewhile(lambda run: _needs_one_rank(run[0]), runs))
    if len(together) > 1:
        tasks = [(_called(case, function, hidden), case.arguments[0]) for case, function in together]
        if done := ranks.attempt_each(tasks, seconds=min(1.0, limit), patience=patience, limit=limit):
            return done
    case, function = next(iter(runs))
    return [
        ranks.attempt(
            _called(case, function, hidden),
            list(case.arguments),
            with_comm=case.with_comm and case.backend is None,
            backend=case.backend,
            patience=patience,
            limit=limit,
        )
    ]


def _needs_one_rank(case: Case) -> bool:
    return len(case.arguments) == 1 and not case.with_comm and case.backend is None


def _called(case: Case, function: Callable, hidden: Sequence[str]) -> Callable:
    called = functools.partial(case.harness, function) if case.harness else function
    return functools.partial(call_without, hidden, called) if hidden else called


def outcome_of(case: Case, function: Callable, attempt: Any) -> Outcome:
    """What an attempt at a case gave, and what is wrong with it."""
    replies = attempt.replies
    results = [reply.value if reply.kind == "returned" else NO_RESULT for reply in replies]
    after = [
        tuple(reply.arguments) if len(reply.arguments) == len(given) else given
        for reply, given in zip(replies, case.arguments, strict=True)
    ]
    outcome = Outcome(case, attempt, results, after, attempt.run)
    wrong = _trouble(outcome) or _wrong_values(outcome) or _changed_argument(outcome, function) or _wrong_cost(outcome)
    if not wrong and case.judge:
        wrong = case.judge(outcome)
    wrong = wrong or _never_waited_for(outcome)
    return replace(outcome, wrong=with_label(wrong, case.label)) if wrong else outcome


def _trouble(outcome: Outcome) -> str | None:
    for reply in outcome.attempt.replies:
        if reply.kind == "raised" and reply.error:
            error = reply.error
            message = f": {one_line(error.message)}" if error.message else ""
            line = f", {error.line}" if error.line else ""
            return f"rank {reply.rank} raised {error.type}{message}{line}"
    trouble = outcome.attempt.trouble
    if trouble and outcome.attempt.afterwards:
        trouble += f" {outcome.attempt.afterwards}"
    return f"r{trouble[1:]}" if trouble and trouble.startswith("Rank ") else trouble


def one_line(text: str, limit: int = 200) -> str:
    """A text without line breaks, cut after `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _wrong_values(outcome: Outcome) -> str | None:
    case = outcome.case
    for rank in range(outcome.world_size):
        if case.expected is not None:
            wrong = difference(rank, outcome.results[rank], case.expected[rank], case.tolerance)
            if wrong:
                return wrong
        for index, expected in (case.expected_arguments[rank] if case.expected_arguments else {}).items():
            wrong = difference(rank, outcome.arguments[rank][index], expected, case.tolerance)
            if wrong:
                return wrong
    return None


def _changed_argument(outcome: Outcome, function: Callable) -> str | None:
    case = outcome.case
    for rank, (before, after) in enumerate(zip(case.arguments, outcome.arguments, strict=True)):
        free = {*case.may_change, *(case.expected_arguments[rank] if case.expected_arguments else ())}
        for index, (was, is_now) in enumerate(zip(before, after, strict=True)):
            if index not in free and is_changed(was, is_now):
                return CHANGED.format(rank=rank, name=_argument_name(function, case, index))
    return None


def _argument_name(function: Callable, case: Case, index: int) -> str:
    """What the function calls an argument; its number where a harness stands between."""
    with contextlib.suppress(TypeError, ValueError, IndexError):
        if not case.harness:
            return f"`{list(inspect.signature(function).parameters)[index + (case.with_comm and not case.backend)]}`"
    return f"number {index + 1}"


def _wrong_cost(outcome: Outcome) -> str | None:
    cost, run = outcome.case.cost, outcome.run
    if cost is None or run is None:
        return None
    for what, counted, bound in (("round", run.rounds, cost.rounds), ("message", run.messages, cost.messages)):
        if bound is not None and counted > bound:
            return (
                f"the result is right, but took {count(counted, what)}; {bound} {'is' if bound == 1 else 'are'} enough"
            )
    if cost.bytes_per_rank is not None:
        per_rank = _per_rank(run.bytes_per_rank, outcome.world_size)
        busiest = max(range(len(per_rank)), key=per_rank.__getitem__)
        if per_rank[busiest] > cost.bytes_per_rank:
            sent, bound = _bytes(per_rank[busiest]), _bytes(math.ceil(cost.bytes_per_rank))
            return f"the result is right, but rank {busiest} sent {sent}; {bound} are enough"
    if cost.collectives is not None and run.collectives != cost.collectives:
        return f"rank 0 made {count(run.collectives, 'collective call')}, expected {cost.collectives}"
    return None


def _never_waited_for(outcome: Outcome) -> str | None:
    """An operation that nobody waits for may never happen (MPI 4.1, section 3.7.3), and its buffer is not yet free."""
    for reply in outcome.attempt.replies:
        for request in reply.never_waited_for:
            return f"the result is right, but rank {reply.rank} never waited for {request}"
    return None


def by_luck(outcome: Outcome) -> Outcome | None:
    """The outcome as a wrong one, where it came out well and, on another day or with other sizes, would not have."""
    notes = outcome.run.notes if outcome.run else []
    if not notes:
        return None
    return replace(outcome, wrong=with_label(f"{BY_LUCK} {notes[0]}", outcome.case.label))


def _per_rank(value: Any, world_size: int) -> list[float]:
    if isinstance(value, dict):
        return [value.get(rank, 0) for rank in range(world_size)]
    return list(value) if isinstance(value, (list, tuple)) else [value] * world_size


def _bytes(number: float) -> str:
    for unit, size in (("MB", 1e6), ("KB", 1e3)):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number:.0f} bytes"


def with_label(wrong: str, label: str) -> str:
    """Name the case: after the finding, or behind the sentences of a report."""
    wrong = wrong.strip()
    if not label:
        return wrong if wrong.endswith((".", "?")) else f"{wrong}."
    return f"{wrong} ({label})." if not wrong.endswith(".") else f"{wrong} ({label})"
