"""The search for the mistake that an answer makes: the known one whose program behaves like it, run on the same case.

A question is asked where one of its programs does on the failed case what the answer did (results, errors, changed
arguments; where the results are right, what was sent in how many rounds) and passes what the answer passed before.
Of several such programs the first counts that does on the next cases, too, what the answer does; where none does, the
first. What no program shows, a line "Recognised …" in the exercise's file says (`recognition`).

Both sides run on numbers that are drawn anew from a fixed seed, and the work is limited by counting runs: so an answer
is asked the same question whatever the numbers of its check were, and whatever else the machine is doing.
"""

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Outcome
from course_utils.checks.finding import Finding
from course_utils.checks.recognition import recogniser
from course_utils.checks.run_cases import Runner
from course_utils.checks.sample_answers import Program, Question
from course_utils.checks.symptoms import same
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.ending import Ending

_FURTHER = 6
"""On how many cases behind the failed one programs are compared with the answer."""
_AHEAD = 16
"""How many programs are run together on the failed case: what needs one rank alone travels to it at once."""
_SAY_ENOUGH = ("IndexError", "KeyError", "OverflowError", "RecursionError", "StopIteration", "ZeroDivisionError")


LEFT_OVER = Question("What is left over from the call before?", ())
"""What is asked in any exercise that has no question of its own for this."""


class SearchEnd(Enum):
    """Why a search ended before all programs were tried."""

    LIMIT = auto()
    STOPPED = auto()


@dataclass(frozen=True)
class Searched:
    """What a search came to.

    Attributes:
        question: whose mistake the answer makes; "" where it makes none that is known.
        runs: of programs, that it took.
        seconds: on the clock.
        ended: why it ended before all programs were tried; None where it did not.
    """

    question: str = ""
    runs: int = 0
    seconds: float = 0.0
    ended: SearchEnd | None = None


class _Ended(Exception):
    """The search may try no further program."""

    def __init__(self, why: SearchEnd) -> None:
        super().__init__(why)
        self.why = why


class MistakeSearch:
    """One search for one answer."""

    def __init__(
        self,
        exercise: Exercise,
        failed: Outcome,
        passed: Sequence[Case],
        next_ones: Callable[[], Iterator[Outcome]],
        run_programs: Runner,
    ) -> None:
        """Args:
        failed: what the answer did on the case that it failed.
        passed: the cases before it.
        next_ones: runs the answer on the cases behind it.
        run_programs: runs programs on cases.
        """
        self._exercise, self._failed, self._passed = exercise, failed, passed
        self._next_ones, self._run_programs = next_ones, run_programs
        self._can_run = bool(exercise.search_runs) and is_comparable(failed)
        self._runs = 0
        self._answers: list[Outcome] | None = None
        self._on_failed: dict[str, Outcome] = {}

    def search(self) -> Searched:
        """Find the first question whose mistake the answer makes."""
        began = time.monotonic()
        self._likely: Question | None = None
        ended = None
        with ProgressBar("searching for the mistake") as self._bar:
            try:
                found = self._found()
            except _Ended as search:
                found, ended = self._likely, search.why
        return Searched(found.text if found else "", self._runs, time.monotonic() - began, ended)

    def _found(self) -> Question | None:
        questions = self._exercise.written.questions
        if self._passed_without_other_calls():
            return next((each for each in questions if AFTER_ANOTHER_CALL in each.recognised), LEFT_OVER)
        for question in questions:
            if question.recognised:
                if self._likely is None and self._recognises(question):
                    return question
                continue
            for program in question.programs if self._can_run else ():
                if self._behaves_alike(program):
                    self._likely = self._likely or question
                    if self._goes_on_alike(program):
                        return question
        return self._likely

    def _passed_without_other_calls(self) -> bool:
        """Whether the failed case is one that the answer passed when no other calls came before."""
        failed = self._failed.case
        return bool(failed.before) and any(
            case.arguments is failed.arguments and not case.before for case in self._passed
        )

    def _recognises(self, question: Question) -> bool:
        test = recogniser(self._exercise, question.recognised)
        try:
            return bool(test(self._failed.case, self._failed))
        except Exception:  # it looked into something of an unexpected form: then it is not this mistake
            return False

    def _behaves_alike(self, program: Program) -> bool:
        """Whether a program fails the failed case as the answer does, and passes what the answer passed."""
        if not alike(self._outcome_of(program), self._failed):
            return False
        function = program.function()
        return not any(outcome.finding for outcome in self._run((case, function) for case in reversed(self._passed)))

    def _goes_on_alike(self, program: Program) -> bool:
        """Whether it does on the next cases, too, what the answer does."""
        function = program.function()
        answers = self._next_answers()
        theirs = self._run((answer.case, function) for answer in answers)
        return all(
            alike(outcome, answer) if answer.finding else not outcome.finding
            for outcome, answer in zip(theirs, answers, strict=True)
        )

    def _next_answers(self) -> list[Outcome]:
        """What the answer does on the next cases, as far as it can be compared there."""
        if self._answers is None:
            next_ones = itertools.islice(self._next_ones(), _FURTHER)
            self._answers = list(itertools.takewhile(is_comparable, next_ones))
        return self._answers

    def _outcome_of(self, program: Program) -> Outcome:
        """What a program does on the failed case; it is run together with those that come next."""
        if program.name not in self._on_failed:
            every = [each for question in self._exercise.written.questions for each in _compared(question)]
            batch = every[every.index(program) :][:_AHEAD]
            runs = ((self._failed.case, each.function()) for each in batch)
            self._on_failed |= zip((each.name for each in batch), self._run(runs))
        return self._on_failed[program.name]

    def _run(self, runs: Iterable[tuple[Case, Callable]]) -> Iterator[Outcome]:
        for outcome in self._run_programs(runs):
            self._runs += 1
            self._bar.refresh()
            if outcome.attempt.ending == Ending.STOPPED:
                raise _Ended(SearchEnd.STOPPED)
            if self._runs >= self._exercise.search_runs:
                raise _Ended(SearchEnd.LIMIT)
            yield outcome


def _compared(question: Question) -> Sequence[Program]:
    return () if question.recognised else question.programs


def is_comparable(outcome: Outcome) -> bool:
    """Whether the answer came to an end by itself, or raised; else there is nothing to compare programs with."""
    return all(reply.kind in ("returned", "raised") for reply in outcome.attempt.replies) or bool(_errors(outcome))


def alike(theirs: Outcome, answers: Outcome) -> bool:
    """Whether two runs of one case went wrong in the same way."""
    if not theirs.finding or _errors(theirs) != _errors(answers):
        return False
    if _errors(answers):
        return True
    wanted = list(_looked_at(answers))
    if all(_same(got, right, answers.case.tolerance) for got, right in wanted):
        alike_sent = answers.case.judge is not None or _sent(theirs) == _sent(answers)
        return alike_sent and is_same_finding(theirs.finding, answers.finding)
    pairs = zip((got for got, _ in wanted), (got for got, _ in _looked_at(theirs)), strict=True)
    return all(_same(got, other, answers.case.tolerance) for got, other in pairs)


def is_same_finding(first: Finding | None, second: Finding | None) -> bool:
    """Whether two findings are the same but for times and words."""
    if first is None or second is None:
        return first is second
    named = all(
        getattr(first, name) == getattr(second, name) for name in ("kind", "key", "rank", "where", "index", "context")
    )
    values = {*first.values} | {*second.values}
    pairs = [(first.values.get(name), second.values.get(name)) for name in values]
    return named and all(_same(*pair, None) for pair in (*pairs, (first.got, second.got)))


def _errors(outcome: Outcome) -> dict[int, str]:
    """Rank → the error that it raised: its type, and its text without numbers where the type alone says little."""
    found = {}
    for reply in outcome.attempt.replies:
        if reply.kind == "raised" and reply.error:
            text = "" if reply.error.type in _SAY_ENOUGH else re.sub(r"0x[0-9a-f]+|\d+", "#", reply.error.message)
            found[reply.rank] = f"{reply.error.type}: {text}"
    return found


def _same(got: Any, wanted: Any, tolerance: float | None) -> bool:
    return got is wanted if wanted is NO_RESULT else same(got, wanted, tolerance)


def _looked_at(outcome: Outcome) -> Iterator[tuple[Any, Any]]:
    """What each rank returned and changed, as far as the case looks at it, each with what is right."""
    case = outcome.case
    for rank, result in enumerate(outcome.results):
        if case.expected is not None and case.expected[rank] is not ...:
            yield result, case.expected[rank]
        for index, wanted in (case.expected_arguments[rank] if case.expected_arguments else {}).items():
            yield outcome.arguments[rank][index], wanted


def _sent(outcome: Outcome) -> tuple | None:
    run = outcome.run
    return (run.rounds, run.messages, tuple(run.bytes_per_rank), run.collectives) if run else None
