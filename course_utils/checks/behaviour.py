"""Which mistake an answer makes: the one whose program behaves like it, run on the same case.

A question is asked where one of its programs does on the failed case what the answer did (results, errors, changed
arguments; where the results are right, what was sent in how many rounds) and passes what the answer passed before.
Of several such programs the first counts that does on the next cases, too, what the answer does; where none does, the
first. What no program shows is said in its file by a line of its own:

    Recognised by the words "sent 2 messages".    they stand in the finding
    Recognised by the error "ZeroDivisionError".  a rank raised it: these words are in its type or text
    Recognised in the case "no layers".           what goes wrong there, luck apart: the words are in the case's label
    Recognised when it hangs.                     by a function of this name, the exercise's or one for all lessons
"""

import contextlib
import functools
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Outcome, Recogniser
from course_utils.checks.run_cases import BY_LUCK
from course_utils.checks.symptoms import COMMON, raised, same
from course_utils.checks.written import Program, Question
from course_utils.errors import CourseError, nearest

SECONDS = 1.0
"""The most that a verdict takes longer because programs are run."""
_FURTHER = 6
"""On how many cases behind the failed one programs are compared with the answer."""
_FORM = re.compile(r'(?:by the (?P<what>words|error)|in the (?P<case>case)) "(?P<words>.+)"|when (?P<symptom>.+)')
_SAY_ENOUGH = ("IndexError", "KeyError", "OverflowError", "RecursionError", "StopIteration", "ZeroDivisionError")
_TIMES = re.compile(r"[\d.,]+\s?(?:(?:s|ms|µs)\b|%)")


def question_for(
    exercise: Exercise,
    outcome: Outcome,
    passed: Sequence[Case],
    rerun: Callable[[Iterable[tuple[Case, Callable]], float], Iterator[Outcome]],
    seconds: float = SECONDS,
    further: Callable[[float], Iterator[Outcome]] = lambda until: iter(()),
) -> str:
    """The first question whose mistake the answer makes; "" where it makes none that is known.

    Args:
        outcome: of the case that failed.
        passed: the cases before it.
        rerun: runs cases with programs until a reading of `time.monotonic`; gives what came to an end by then.
        seconds: after which no further program is run, and nothing is asked unless a program was found: what stands
            below is more general, and might lead astray. So it is where a program has cost its ranks.
        further: what the answer does on the next cases, until a reading of `time.monotonic`.
    """
    until = time.monotonic() + seconds
    questions = exercise.written.questions

    def run(runs: Iterable[tuple[Case, Callable]]) -> Iterator[Outcome]:
        for theirs in rerun(runs, until):
            if any(reply.kind == "lost" for reply in theirs.attempt.replies):
                raise _EnoughTried
            yield theirs
        if time.monotonic() >= until:
            raise _EnoughTried

    def programs_of(question: Question) -> Sequence[Program]:
        return question.programs if _can_be_compared(outcome) and not question.recognised else ()

    def fits(program: Program, theirs: Outcome) -> bool:
        if not alike(theirs, outcome):
            return False
        function = program.function()
        return not any(other.wrong for other in run((case, function) for case in reversed(passed)))

    def goes_on_like_it(program: Program) -> bool:
        function = program.function()
        others = run((answers.case, function) for answers in next_ones())
        return all(map(_goes_on, others, next_ones()))

    @functools.cache
    def next_ones() -> list[Outcome]:
        ended = itertools.takewhile(_can_be_compared, further(until))
        return list(itertools.islice(ended, _FURTHER))

    on_failed = run((outcome.case, program.function()) for question in questions for program in programs_of(question))
    first = ""
    with contextlib.suppress(_EnoughTried):
        for question in questions:
            if question.recognised and not first and _sees(recogniser(exercise, question), outcome):
                return question.text
            for program in programs_of(question):
                if fits(program, next(on_failed)):
                    first = first or question.text
                    if goes_on_like_it(program):
                        return question.text
    return first


def recogniser(exercise: Exercise, question: Question) -> Recogniser:
    """The test that a question's line "Recognised …" stands for.

    Raises:
        CourseError: the line is of no known form, or names no symptom.
    """
    said = _FORM.fullmatch(question.recognised)
    if not said:
        raise CourseError(f'{exercise.name}.md: what is "Recognised {question.recognised}"?')
    words = said["words"]
    if said["case"]:
        return lambda case, outcome: words in case.label and not outcome.wrong.startswith(BY_LUCK)
    if said["what"] == "words":
        return lambda case, outcome: words in outcome.wrong
    if said["what"] == "error":
        return lambda case, outcome: raised(outcome, words)
    known = {**COMMON, **exercise.symptoms}
    name = said["symptom"]
    if name not in known:
        raise CourseError(f'{exercise.name}.md: no symptom is called "{name}".{nearest(name, list(known))}')
    return known[name]


class _EnoughTried(Exception):
    """The time is up, or ranks are lost."""


def _sees(recognises: Recogniser, outcome: Outcome) -> bool:
    try:
        return bool(recognises(outcome.case, outcome))
    except Exception:  # it looked into something of an unexpected form: then it is not this mistake
        return False


def _can_be_compared(outcome: Outcome) -> bool:
    """Whether the answer came to an end by itself, or raised; else there is nothing to compare programs with."""
    return all(reply.kind in ("returned", "raised") for reply in outcome.attempt.replies) or bool(_errors(outcome))


def _goes_on(theirs: Outcome, answers: Outcome) -> bool:
    return alike(theirs, answers) if answers.wrong else not theirs.wrong


def alike(theirs: Outcome, outcome: Outcome) -> bool:
    """Whether two runs of one case went wrong in the same way."""
    if not theirs.wrong or _errors(theirs) != _errors(outcome):
        return False
    if _errors(outcome):
        return True
    wanted = list(_looked_at(outcome))
    if all(_same(got, right, outcome.case.tolerance) for got, right in wanted):
        alike_sent = outcome.case.judge is not None or _sent(theirs) == _sent(outcome)
        return alike_sent and _finding(theirs) == _finding(outcome)
    pairs = zip((got for got, _ in wanted), (got for got, _ in _looked_at(theirs)), strict=True)
    return all(_same(got, other, outcome.case.tolerance) for got, other in pairs)


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
    return run and (run.rounds, run.messages, tuple(run.bytes_per_rank), run.collectives)


def _finding(outcome: Outcome) -> str:
    """What the check found, without times, which differ from run to run."""
    return _TIMES.sub("", outcome.wrong)
