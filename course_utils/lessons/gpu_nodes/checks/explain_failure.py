"""The check of `explain_failure`: stories made by hand, recorded logs, and stories with random ranks and times."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.compare import describe, difference
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import same
from course_utils.lessons.gpu_nodes.failures.line_reports import reports_of
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.recorded_logs import RECORDED, recording
from course_utils.lessons.gpu_nodes.failures.story import FailureReport, ReportKind, Story
from course_utils.words import count, join, ranks

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
CAUSE, SIGN, CONSEQUENCE = ReportKind
KINDS = {
    "KeyError": CAUSE,
    "ValueError": CAUSE,
    "extension not built": CAUSE,
    "out of memory": CAUSE,
    "exit code 1": SIGN,
    "killed by signal 9": SIGN,
    "collective timeout": CONSEQUENCE,
    "connection closed": CONSEQUENCE,
    "unreachable node": CONSEQUENCE,
}
"""The failures of the stories made here."""
Entry = tuple[str, int | None, float]
"""A failure, its rank, and the seconds after noon."""

TEN_MINUTES: list[Entry] = [("collective timeout", 0, 610), ("collective timeout", 1, 610), ("KeyError", 2, 7)]
ALIKE: list[Entry] = [("extension not built", rank, 4 + rank / 10) for rank in (1, 0, 3, 2)]
NO_CAUSE: list[Entry] = [("collective timeout", rank, at) for rank, at in ((3, 603), (0, 601), (1, 602))]
EARLY: list[Entry] = [("connection closed", 0, 5), ("killed by signal 9", 1, 6), ("exit code 1", 0, 7)]
TWO: list[Entry] = [("ValueError", 1, 9), ("KeyError", 3, 8), ("unreachable node", 0, 8), ("ValueError", 0, 9.5)]
LATER: list[Entry] = [("KeyError", 1, 4), ("KeyError", 2, 3), ("connection closed", 0, 5), ("KeyError", 3, 6)]
JOB: list[Entry] = [("connection closed", 0, 5), ("killed by signal 9", 1, 6), ("out of memory", None, 7)]
JOB_AND_RANK: list[Entry] = [("out of memory", None, 3), ("out of memory", 2, 4), ("connection closed", 1, 5)]
TWICE: list[Entry] = [("KeyError", 1, 3), ("exit code 1", 1, 5), ("KeyError", 1, 4), ("exit code 1", 1, 4)]
EQUAL: list[Entry] = [("ValueError", 2, 3), ("unreachable node", 1, 3), ("KeyError", 0, 3), ("exit code 1", 2, 3)]
MANY: list[Entry] = [("out of memory", rank, 7) for rank in (10, 9, 2, 11)]
MADE: dict[str, tuple[list[Entry], int]] = {
    "ten-minutes": (TEN_MINUTES, 3),
    "all-alike": (ALIKE, 4),
    "no-cause": (NO_CAUSE, 4),
    "twice": (TWICE, 2),
    "earlier-consequence": (EARLY, 2),
    "two-causes": (TWO, 5),
    "whole-job": (JOB, 2),
    "job-and-rank": (JOB_AND_RANK, 4),
    "only-the-job": ([("out of memory", None, 3)], 2),
    "equal-times": (EQUAL, 3),
    "ten-or-more": (MANY, 12),
    "no-reports": ([], 4),
}
"""Key of a case → what is reported, in the order of the log, and the number of ranks."""
FEW, MOST = 5, 8
"""So many reports are listed behind a verdict, and so many are named in it."""

NO_STORY = "your function returned {got}, expected {expected}"
WRONG = {
    "cause": "the cause is {expected}, and yours is {got}",
    "ranks": "`ranks` has to be {expected}, and yours is {got}",
    "others": "`others` has to be {expected}, and yours is {got}",
    "silent": "`silent` has to be {expected}, and yours is {got}",
}
"""Part of a story → the words for one in which it is wrong."""


def reports_from(entries: Iterable[Entry]) -> list[FailureReport]:
    """The reports of a story made here."""
    found = []
    for number, (failure, rank, seconds) in enumerate(entries, start=1):
        text = failure if rank is None else f"[rank{rank}]: {failure}"
        line = Line(text, number, "train.out", rank, "", NOON + seconds)
        found.append(FailureReport(failure, KINDS[failure], rank, NOON + seconds, line))
    return found


def by_hand(reports: Sequence[FailureReport], world_size: int) -> Story | None:
    """The story, from positions in `reports` that are sorted once by kind and time, and once by time alone."""
    first = sorted((report.kind, report.time, position) for position, report in enumerate(reports))
    if not first:
        return None
    cause = reports[first[0][2]]
    in_time = sorted((report.time, position) for position, report in enumerate(reports))
    everyone = range(world_size)
    return Story(
        cause,
        tuple(rank for rank in everyone if any((cause.failure, rank) == (each.failure, each.rank) for each in reports)),
        tuple(reports[position] for _, position in in_time if reports[position].failure != cause.failure),
        tuple(rank for rank in everyone if all(report.rank != rank for report in reports)),
    )


def at_random(rng: np.random.Generator, world_size: int, number: int) -> list[FailureReport]:
    """Reports of any ranks, in any order, of which many have equal times, and half of the stories have no cause."""
    least = CAUSE if rng.integers(2) else SIGN
    failures = [failure for failure, kind in KINDS.items() if kind >= least]
    writers = [None, *range(world_size)]
    return reports_from(
        (str(rng.choice(failures)), writers[rng.integers(len(writers))], int(rng.integers(6)) / 2)
        for _ in range(number)
    )


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(reports: list[FailureReport], world_size: int, key: str = "", about: str = "") -> Case:
        label = f"{about}{ranks(world_size)}, {listed(reports)}"
        return Case(label, [(reports, world_size)], with_comm=False, judge=_judge, key=key)

    def expecting(reports: list[FailureReport], world_size: int) -> Case:
        due = by_hand(reports, world_size)
        return Case(ranks(world_size), [(reports, world_size)], [due], with_comm=False, tolerance=0.0)

    for key, (entries, world_size) in MADE.items():
        yield case(reports_from(entries), world_size, key)
    as_sign = [replace(report, kind=SIGN) if report.rank == 1 else report for report in reports_from(LATER)]
    yield case(as_sign, 4, "one-failure-two-kinds")
    for failure in RECORDED:
        reports = reports_of(lines_of(recording(failure).log), world_size=2)
        order = rng.permutation(len(reports))
        yield case([reports[position] for position in order], 2, about=f'the recorded log of "{failure}", ')
    for world_size in (2, 3, 5, 16, 40):
        for number in (world_size, 3 * world_size):
            yield case(at_random(rng, world_size, number), world_size)
    yield in_a_row(expecting(reports_from(TEN_MINUTES), 3), expecting(reports_from(NO_CAUSE), 4))


def listed(reports: Sequence[FailureReport]) -> str:
    """The reports in words, or how many there are."""
    if not 0 < len(reports) <= FEW:
        return count(len(reports), "report")
    return "reports " + "; ".join(f"[{at}] {in_words(report)}" for at, report in enumerate(reports))


def in_words(report: FailureReport) -> str:
    """A report in words: "KeyError, rank 2, 12:00:07.0, cause"."""
    owner = "the job" if report.rank is None else f"rank {report.rank}"
    clock = datetime.fromtimestamp(report.time, UTC).strftime("%H:%M:%S.%f")[:-5]
    return f"{report.failure}, {owner}, {clock}, {report.kind.name.lower()}"


def _judge(outcome: Outcome) -> Finding | None:
    reports, world_size = outcome.case.arguments[0]
    due, result = by_hand(reports, world_size), outcome.results[0]
    found = difference(0, result, due, 0.0)
    if found is None:
        return None
    part = found.where[0] if found.where else None
    if not isinstance(part, str):
        return own("no-story", NO_STORY, got=describe(result), expected=describe(due), result=result)
    got, expected = (_part_in_words(getattr(story, part), reports) for story in (result, due))
    return own(part, WRONG[part], got=got, expected=expected, result=result)


def _part_in_words(part: Any, reports: Sequence[FailureReport]) -> str:
    """A part of a story, in which reports are named by where they are in the list that was given."""
    if type(part) is FailureReport:
        return _name(part, reports, in_full=len(reports) > FEW)
    if type(part) in (tuple, list) and part and all(type(each) is FailureReport for each in part):
        names = [_name(each, reports) for each in part[:MOST]]
        more = [f"{len(part) - MOST} more"] if len(part) > MOST else []
        return join([*names, *more])
    if type(part) in (tuple, list):
        return describe(tuple(part)) if part else "empty"
    return describe(part)


def _name(report: FailureReport, reports: Sequence[FailureReport], in_full: bool = False) -> str:
    """A report as the learner's code would name it; nothing of it is asked that might not be what it seems."""
    for at, given in enumerate(reports):
        if same(report, given, 0.0):
            return f"reports[{at}] ({in_words(given)})" if in_full else f"reports[{at}]"
    return "a report that is not in `reports`"


EXERCISE = Exercise(
    library="failures.story",
    number=5,
    minutes=15,
    difficulty=2,
    turn="the report that explains the most, who shares it, the others, and who is silent",
    title="which of many reports is the cause of a failed launch",
    cases=_cases,
    hints=(
        "A rank that waits for ten minutes complains long after the rank that failed, and yet its complaint may be the "
        "first line of the log. So what do you compare first, the kinds of two reports, their times, or their "
        "positions in the list?",
        "`in_time = sorted(reports, key=lambda report: report.time)` leaves reports of equal times in their order, and "
        "`min(in_time, key=lambda report: report.kind)` returns the first of several smallest. Collect the ranks with "
        "the cause's `failure` in a set, without None. Take all reports of `in_time` that have a different `failure`, "
        "and all numbers of `range(world_size)` that are the rank of no report.",
    ),
    praise=lambda outcome: (
        f"{len(MADE)} small stories, {len(RECORDED)} recorded logs, and up to 40 ranks whose reports are in any order"
    ),
)
