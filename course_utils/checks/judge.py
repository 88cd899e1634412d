"""Run a learner's function on the ranks, case by case, and find the true cause where one goes wrong."""

import functools
import inspect
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.behaviour import SECONDS, question_for
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.run_cases import PATIENCE, RanksLike, by_luck, one_line, outcomes, with_label
from course_utils.checks.verdict import FAILED, PASSED, Verdict, not_begun
from course_utils.errors import CourseError
from course_utils.ranks.engine.process_settings import usual_settings
from course_utils.ranks.engine.reply import to_bytes
from course_utils.ranks.run import events_of
from course_utils.words import count

RERUN = {"patience": 0.5, "limit": 2.0}
"""Seconds for what is run to find the mistake: nobody learns from waiting for it."""


def fresh_seed() -> int:
    """A new seed for each check, so that no answer can know the numbers; `COURSE_SEED` repeats one."""
    try:
        return int(os.environ["COURSE_SEED"])
    except (KeyError, ValueError):
        return int.from_bytes(os.urandom(4), "little")


@usual_settings()
def cases_of(exercise: Exercise, seed: int, world_size: int) -> list[Case]:
    """The exercise's cases for this many ranks; the same seed gives the same numbers."""
    return list(exercise.cases(np.random.default_rng(seed), world_size))


@usual_settings()
def judge(
    exercise: Exercise,
    function: Callable,
    ranks: RanksLike,
    *,
    seed: int | None = None,
    cases: Sequence[Case] | None = None,
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
        cases: what to run; None: the exercise's own, drawn with this seed for as many ranks.
        patience: seconds without progress after which the ranks are taken to hang.
        limit: seconds after which a case is ended in any event; None: the exercise's own.
        seconds: for which programs with known mistakes are run, to find the one that the answer makes.
        hide: the course's own answer, so that `function` cannot call it; False to judge that one itself.
        others: brings the ranks on which those programs run; None: on `ranks` too.

    Raises:
        CourseError: not one case fits on so few ranks.
    """
    seed = fresh_seed() if seed is None else seed
    hidden = (exercise.library, *exercise.also_hidden) if hide else ()
    cases = cases_of(exercise, seed, ranks.world_size) if cases is None else cases
    fitting = [case for case in cases if len(case.arguments) <= ranks.world_size]
    left_out = max((len(case.arguments) for case in cases if len(case.arguments) > ranks.world_size), default=0)
    if not fitting:
        raise CourseError(
            f"{exercise.name} needs {count(left_out or 1, 'rank')}. Run `{exercise.start(left_out or 4)}`."
        )
    problems = (_signature_problem(function, case) for case in fitting)
    if unfit := next(filter(None, problems), None) or _luggage_problem(function):
        return Verdict(FAILED, exercise.name, unfit, seed=seed)
    if exercise.needs_torch:
        import_torch(ranks)
    run = functools.partial(outcomes, ranks=ranks, patience=patience, limit=limit or exercise.limit, hidden=hidden)
    runs = [(case, function) for case in fitting]
    passed: list[Case] = []
    lucky: Outcome | None = None  # a later case may show what else would come of it, and that says more

    def failed(outcome: Outcome) -> Verdict:
        began = time.monotonic()
        further = functools.partial(outcomes, runs[len(passed) + 1 :], ranks, **RERUN, hidden=hidden)
        question = _question(exercise, outcome, passed, further, others or (lambda: ranks), seconds)
        verdict = _verdict(exercise, FAILED, f"{outcome.wrong} {question}".rstrip(), outcome, seed, question)
        verdict.details["search_seconds"] = time.monotonic() - began
        return verdict

    for outcome in itertools.chain(run(runs[:1]), run(runs[1:])):  # many answers are wrong in the first case already
        if any(_is_stub(reply.error) for reply in outcome.attempt.replies):
            if not passed:
                return not_begun(exercise.name)
            reached = with_label("right so far; then `raise NotImplementedError` was reached", outcome.case.label)
            return _verdict(exercise, FAILED, reached, outcome, seed)
        if outcome.wrong:
            return failed(outcome)
        lucky = lucky or by_luck(outcome)
        passed.append(outcome.case)
    if lucky:
        return failed(lucky)
    text = exercise.praise(outcome)
    if left_out:
        text += f" (as far as {count(ranks.world_size, 'rank')} can show; `course.start({left_out})` brings the rest)"
    return _verdict(exercise, PASSED, text, outcome, seed)


def _is_stub(error: Any) -> bool:
    """Whether the line that the exercise came with was reached; libraries raise NotImplementedError with a text."""
    return bool(error) and error.type == "NotImplementedError" and error.message.strip()[:9] in ("", "your turn")


def _question(
    exercise: Exercise,
    outcome: Outcome,
    passed: list[Case],
    further: Callable[..., Iterator[Outcome]],
    on: Callable[[], RanksLike],
    seconds: float,
) -> str:
    if not exercise.written.questions:
        return ""
    ranks = on()
    if exercise.needs_torch:
        import_torch(ranks)

    def rerun(runs: Iterable[tuple[Case, Callable]], until: float) -> Iterator[Outcome]:
        return outcomes(runs, ranks, **RERUN, until=until)

    return question_for(exercise, outcome, passed, rerun, seconds, lambda until: further(until=until))


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
        to_bytes(function)
    except Exception as error:  # whatever an object's own pickling may raise
        return f"uses something of the notebook that cannot be sent to the ranks: {one_line(str(error))}."
    return None


def import_torch(ranks: RanksLike) -> None:
    """Let every rank import torch before the clock of the first case runs: it takes seconds."""
    ranks.attempt(_torch_version, [()] * ranks.world_size, with_comm=False, patience=120.0, limit=120.0)


def _torch_version() -> str:
    import torch
    import torch.distributed

    return str(torch.__version__)
