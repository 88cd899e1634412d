"""Run a learner's function on the ranks, case by case, and find the true cause where one goes wrong."""

import contextlib
import functools
import inspect
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import cloudpickle
import numpy as np

from course_utils.checks.behaviour import SECONDS, question_for
from course_utils.checks.compare import CHANGED, difference, is_changed
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Outcome
from course_utils.checks.own_answer import call_without
from course_utils.checks.verdict import FAILED, PASSED, Verdict, not_begun
from course_utils.errors import CourseError
from course_utils.ranks.run import events_of
from course_utils.words import count

PATIENCE, LIMIT = 3.0, 30.0
RERUN_PATIENCE, RERUN_LIMIT = 0.5, 2.0
"""The same for a program with a known mistake: nobody learns from waiting for it."""


class RanksLike(Protocol):
    """What judging needs of `course_utils.ranks.ranks.Ranks`; a test may bring its own."""

    world_size: int

    def attempt(self, function: Callable, arguments: list[tuple], **options: Any) -> Any:
        """Run function(comm, *arguments[rank]) on each rank; never raises for what the learner did."""


def fresh_seed() -> int:
    """A new seed for each check, so that no answer can know the numbers; `COURSE_SEED` repeats one."""
    try:
        return int(os.environ["COURSE_SEED"])
    except (KeyError, ValueError):
        return int.from_bytes(os.urandom(4), "little")


def judge(
    exercise: Exercise,
    function: Callable,
    ranks: RanksLike,
    *,
    seed: int | None = None,
    patience: float = PATIENCE,
    limit: float | None = None,
    seconds: float = SECONDS,
    hide: bool = True,
    others: Callable[[], RanksLike] | None = None,
) -> Verdict:
    """The verdict on `function`: every case that fits on the ranks, until the first that fails.

    Args:
        exercise: what is asked for.
        function: the learner's; shipped to every rank.
        ranks: the running ranks.
        seed: of the cases' numbers; None draws a new one.
        patience: seconds without progress after which the ranks are taken to hang.
        limit: seconds after which a case is ended in any event; None: the exercise's own.
        seconds: for which programs with known mistakes are run, to find the one that the answer makes.
        hide: the course's own answer, so that `function` cannot call it; False to judge that one itself.
        others: brings the ranks on which those programs run; None: on `ranks` too.

    Raises:
        CourseError: not one case fits on so few ranks.
    """
    seed = fresh_seed() if seed is None else seed
    ready = not exercise.needs_torch
    outcome, left_out = None, 0
    passed: list[Case] = []
    hidden = (exercise.library, *exercise.also_hidden) if hide else ()
    for case in exercise.cases(np.random.default_rng(seed), ranks.world_size):
        if len(case.arguments) > ranks.world_size:
            left_out = max(left_out, len(case.arguments))
            continue
        unfit = _signature_problem(function, case) or (None if outcome else _luggage_problem(function))
        if unfit:
            return Verdict(FAILED, exercise.name, unfit, seed=seed)
        if not ready:
            import_torch(ranks)
            ready = True
        earlier, outcome = outcome, run_case(case, function, ranks, patience, limit or exercise.limit, hidden)
        if any(_is_stub(reply.error) for reply in outcome.attempt.replies):
            if earlier is None:
                return not_begun(exercise.name)
            reached = _with_label("right so far; then `raise NotImplementedError` was reached", case.label)
            return _verdict(exercise, FAILED, reached, outcome, seed)
        if outcome.wrong:
            began = time.monotonic()
            question = _question(exercise, outcome, passed, others or (lambda: ranks), seconds)
            verdict = _verdict(exercise, FAILED, f"{outcome.wrong} {question}".rstrip(), outcome, seed, question)
            verdict.details["search_seconds"] = time.monotonic() - began
            return verdict
        passed.append(case)
    if outcome is None:
        raise CourseError(
            f"{exercise.name} needs {count(left_out or 1, 'rank')}. Run `{exercise.start(left_out or 4)}`."
        )
    text = exercise.praise(outcome)
    if left_out:
        text += f" (as far as {count(ranks.world_size, 'rank')} can show; `course.start({left_out})` brings the rest)"
    return _verdict(exercise, PASSED, text, outcome, seed)


def run_case(
    case: Case,
    function: Callable,
    ranks: RanksLike,
    patience: float = PATIENCE,
    limit: float = LIMIT,
    hidden: Sequence[str] = (),
) -> Outcome:
    """Run one case on the ranks; `Outcome.wrong` says what is wrong with what came back.

    Args:
        hidden: functions that raise meanwhile, "module:function".
    """
    called = functools.partial(case.harness, function) if case.harness else function
    if hidden:
        called = functools.partial(call_without, hidden, called)
    attempt = ranks.attempt(
        called,
        list(case.arguments),
        with_comm=case.with_comm and case.backend is None,
        backend=case.backend,
        patience=patience,
        limit=limit,
    )
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
    if not wrong:
        return outcome
    return Outcome(case, attempt, results, after, attempt.run, _with_label(wrong, case.label))


def _trouble(outcome: Outcome) -> str | None:
    for reply in outcome.attempt.replies:
        if reply.kind == "raised" and reply.error:
            error = reply.error
            message = f": {_one_line(error.message)}" if error.message else ""
            line = f", {error.line}" if error.line else ""
            return f"rank {reply.rank} raised {error.type}{message}{line}"
    trouble = outcome.attempt.trouble
    if trouble and any(reply.kind == "lost" for reply in outcome.attempt.replies):
        trouble += " New ranks were started; variables of the old ones are gone."
    return f"r{trouble[1:]}" if trouble and trouble.startswith("Rank ") else trouble


def _is_stub(error: Any) -> bool:
    """Whether the line that the exercise came with was reached; libraries raise NotImplementedError with a text."""
    return bool(error) and error.type == "NotImplementedError" and error.message.strip()[:9] in ("", "your turn")


def _one_line(text: str, limit: int = 200) -> str:
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


def _per_rank(value: Any, world_size: int) -> list[float]:
    if isinstance(value, dict):
        return [value.get(rank, 0) for rank in range(world_size)]
    return list(value) if isinstance(value, (list, tuple)) else [value] * world_size


def _bytes(number: float) -> str:
    for unit, size in (("MB", 1e6), ("KB", 1e3)):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number:.0f} bytes"


def _with_label(wrong: str, label: str) -> str:
    """Name the case: after the finding, or behind the sentences of a report."""
    wrong = wrong.strip()
    if not label:
        return wrong if wrong.endswith((".", "?")) else f"{wrong}."
    return f"{wrong} ({label})." if not wrong.endswith(".") else f"{wrong} ({label})"


def _question(
    exercise: Exercise, outcome: Outcome, passed: list[Case], on: Callable[[], RanksLike], seconds: float
) -> str:
    if not exercise.written.questions:
        return ""
    ranks = on()
    if exercise.needs_torch:
        import_torch(ranks)

    def rerun(case: Case, program: Callable, left: float) -> Outcome:
        return run_case(case, program, ranks, RERUN_PATIENCE, min(RERUN_LIMIT, left))

    return question_for(exercise, outcome, passed, rerun, seconds)


def _verdict(exercise: Exercise, mark: str, text: str, outcome: Outcome, seed: int, question: str = "") -> Verdict:
    replies = outcome.attempt.replies
    events = tuple(events_of(replies)) if exercise.picture else ()
    output = tuple((reply.rank, reply.output) for reply in replies if reply.output) if mark == FAILED else ()
    cost = outcome.case.cost
    details = {
        "picture_title": None if mark == PASSED else outcome.case.label or None,
        "expected_rounds": cost.rounds if cost else None,
        "question": question,
        "drawing": functools.partial(exercise.drawing, outcome) if exercise.drawing else None,
    }
    return Verdict(mark, exercise.name, text, events, output, seed, details)


def _signature_problem(function: Callable, case: Case) -> str | None:
    """Say so before anything runs where the function cannot be called with the case's arguments."""
    if case.harness:
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    given = len(case.arguments[0]) + (case.with_comm and case.backend is None)
    try:
        signature.bind(*[None] * given)
    except TypeError:
        takes = ", ".join(signature.parameters) or "nothing"
        return f"is called with {count(given, 'argument')}, but takes ({takes}). Put its first line back as it was."
    return None


def _luggage_problem(function: Callable) -> str | None:
    """Say so where the function uses something of the notebook that cannot travel to the ranks, as `ranks` itself."""
    try:
        cloudpickle.dumps(function)
    except Exception as error:  # whatever an object's own pickling may raise
        return f"uses something of the notebook that cannot be sent to the ranks: {_one_line(str(error))}."
    return None


def import_torch(ranks: RanksLike) -> None:
    """Let every rank import torch before the clock of the first case runs: it takes seconds."""
    ranks.attempt(_torch_version, [()] * ranks.world_size, with_comm=False, patience=120.0, limit=120.0)


def _torch_version() -> str:
    import torch
    import torch.distributed

    return str(torch.__version__)
