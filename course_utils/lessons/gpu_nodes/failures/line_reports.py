"""From the lines of a launch to reports, which `explain_failure` makes a story of."""

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_utils.lessons.gpu_nodes.failures.exit_codes import (
    EXIT_CODE,
    INSIDE_MPI,
    exits_of,
    named_process,
    ranks_of_processes,
    ranks_that_failed,
    stacked_reason,
    tasks_of,
)
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.own_words import ENDS_ITSELF, OWN_ERROR, PROGRESS, own_error
from course_utils.lessons.gpu_nodes.failures.rules import is_error, may_mean, meaning_of
from course_utils.lessons.gpu_nodes.failures.story import FailureReport, ReportKind
from course_utils.lessons.gpu_nodes.failures.tracebacks import Tracebacks, tracebacks_of, unmarked, words_of

AROUND = 3
"""So many lines before and after a line may decide what it means."""
MANY_STEPS = 50
"""A process that prints so many lines about its progress after an error has survived it."""
YIELDING = {"unreachable node", "localhost", "InfiniBand", "address in use", "wrong rank count"}
"""What can also follow from the failure of a different rank: it counts as a cause only if there is no other."""
FROM_OUTSIDE = {"time limit", "cancelled"}
"""How somebody ends a job, also one that hangs because a rank failed."""
HARMLESS = {"terminated", "interrupted", "command not found", "conda not active"}
"""What may well happen in a job that goes on, or that somebody ends."""
NAMES_A_RANK = {"missing rank", "waited in vain"}
"""Reports by which a rank points to a different one. They tell more than how it ended itself."""
IMPLIED = {EXIT_CODE, "aborted", "terminated"}
"""What is said of a process that ended after it had complained of something else."""
CPP_EXCEPTION = "C++ exception"
"""An exception of C++ that no rule knows."""
_LAUNCHERS_OWN = {
    "ChildFailedError",
    "CalledProcessError",
    "ProcessRaisedException",
    "ProcessExitedException",
    "RayTaskError",
}
"""Exceptions of launchers, which say only that a process failed."""
_MISSING_FILE = re.compile(r"No such file or directory: '(/[^']+)'")
_WROTE = re.compile(r"\b(?:wrote|saved|written|saving|save)\b", re.IGNORECASE)
_SOURCE = re.compile(r"^(?:\[rank\d+\]:)?\s+(?:raise|return|assert|if|print)\b|^\++ |^\s*#|.{0,100}\b(?:DEBUG|TRACE)\b")
"""Code, commands that a shell repeats, and what a program says only to its developers."""
_TORCHRUN_AGENT = re.compile(r"^\[?[WEIF]\d{4} [\d:.]+ (\d+) torch/distributed/(?:run|elastic/agent|launcher)")
_TORCHRUN_BEGINS = re.compile(r"Setting OMP_NUM_THREADS environment variable for each process")
_TASKS = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+):")
_NEAR_PIDS = 200


def reports_of(lines: Sequence[Line], world_size: int = 0) -> list[FailureReport]:
    """What the lines of a launch report: exceptions, what rules know, and how processes ended.

    Args:
        lines: of one launch.
        world_size: the number of ranks, or 0 if it is not known.
    """
    tracebacks = tracebacks_of(lines)
    exceptions = list(_of_exceptions(tracebacks))
    failed = ranks_that_failed(lines)
    of_program = [chain for chain in tracebacks.chains if chain[-1].type not in _LAUNCHERS_OWN]
    if len(of_program) == len(exceptions) == len(failed) == 1 and exceptions[0].rank is None:
        exceptions = [replace(exceptions[0], rank=failed.pop())]
    others = [
        *_still_missing(_of_lines(lines, tracebacks), lines),
        *(FailureReport(end.failure, end.kind, end.rank, 0.0, end.line) for end in exits_of(lines)),
    ]
    reports = [*_not_survived(exceptions, lines), *others] or exceptions
    if all(report.kind != ReportKind.CAUSE for report in reports):
        reports += _of_own_words(reports, lines, tracebacks)
    unranked = sum(chain[-1].rank is None and chain[-1].position is not None for chain in tracebacks.chains)
    return _with_ranks(_weighed(_earliest(_in_time(reports, lines)), lines, world_size, unranked))


def _key(line: Line) -> tuple[str, int, str]:
    return line.file, line.number, line.text


def _in_time(reports: Iterable[FailureReport], lines: Sequence[Line]) -> list[FailureReport]:
    """The reports with their times, in the order of time and then of the log.

    Lines without a clock have the time of a line before, or of the first one that has any.
    """
    wanted = {_key(report.line) for report in reports}
    latest = next((line.time for line in lines if line.time is not None), 0.0)
    when: dict[tuple[str, int, str], tuple[float, int]] = {}
    for index, line in enumerate(lines):
        latest = line.time if line.time is not None else latest
        if (key := _key(line)) in wanted:
            when.setdefault(key, (latest, index))
    in_order = sorted(reports, key=lambda report: when[_key(report.line)])
    return [replace(report, time=when[_key(report.line)][0]) for report in in_order]


def _earliest(reports: Iterable[FailureReport]) -> list[FailureReport]:
    """Of reports of the same failure by the same rank the earliest one."""
    first: dict[tuple[str, ReportKind, int | None], FailureReport] = {}
    for report in reports:
        first.setdefault((report.failure, report.kind, report.rank), report)
    return list(first.values())


def _with_ranks(reports: Sequence[FailureReport]) -> list[FailureReport]:
    """The reports without those of no rank, if ranks report the same."""
    with_rank = {(report.failure, report.kind) for report in reports if report.rank is not None}
    return [report for report in reports if report.rank is not None or (report.failure, report.kind) not in with_rank]


def _of_exceptions(tracebacks: Tracebacks) -> Iterator[FailureReport]:
    """One report for each exception, however many followed from it."""
    for chain in tracebacks.chains:
        around = list(words_of(chain))
        meanings = [
            meaning_of([raised.type, raised.line.text, *(line.text for line in raised.message)], around)
            for raised in chain
        ]
        pairs = list(zip(chain, meanings, strict=True))
        counted = [(raised, meaning) for raised, meaning in pairs if not raised.is_caught]
        if all(meaning and meaning.kind == ReportKind.CONSEQUENCE for _, meaning in counted):
            counted = pairs
        known = [(raised, meaning) for raised, meaning in counted if meaning]
        causes = [pair for pair in known if pair[1].kind != ReportKind.CONSEQUENCE]
        own = [raised for raised, meaning in counted if not meaning and raised.type not in _LAUNCHERS_OWN]
        if causes or (known and (counted[0][1] or not own)):
            raised, meaning = (causes or known)[0]
            yield FailureReport(meaning.failure, meaning.kind, raised.rank, 0.0, raised.reason)
        elif own:
            failure = CPP_EXCEPTION if own[0].is_cpp else own[0].type
            yield FailureReport(failure, ReportKind.CAUSE, own[0].rank, 0.0, own[0].line)


def _of_lines(lines: Sequence[Line], tracebacks: Tracebacks) -> Iterator[FailureReport]:
    """A report for each line that a rule knows and that is no part of an exception."""
    ranks = ranks_of_processes(lines)
    for index, line in enumerate(lines):
        if index in tracebacks.inside or not may_mean(line.text) or _SOURCE.match(line.text):
            continue
        around = (other.text for other in lines[max(index - AROUND, 0) : index + AROUND + 1] if other.rank == line.rank)
        if reason := stacked_reason(lines, index):
            yield FailureReport(INSIDE_MPI, ReportKind.SIGN, line.rank, 0.0, reason)
        elif meaning := meaning_of([line.text], around):
            named = meaning.rank_in(line.text)
            yield FailureReport(
                meaning.failure, meaning.kind, _rank_about(line, ranks) if named is None else named, 0.0, line
            )
            if named is not None and line.rank not in (None, named):
                yield FailureReport("waited in vain", ReportKind.CONSEQUENCE, line.rank, 0.0, line)


def _rank_about(line: Line, ranks: Mapping[int, int]) -> int | None:
    """Who wrote a line, or whom it names by the number of a process, as the kernel and GPU drivers do."""
    if line.rank is not None or (process := named_process(line.text)) is None:
        return line.rank
    return ranks.get(process)


def _of_own_words(
    reports: Iterable[FailureReport], lines: Sequence[Line], tracebacks: Tracebacks
) -> Iterator[FailureReport]:
    """Yield what the program wrote about an error right before it ended itself.

    A watchdog that timed out ends its process itself, so that process had no words of its own.
    """
    reports = list(reports)
    timed_out = {report.rank for report in reports if report.failure == "collective timeout"}
    for report in reports:
        if timed_out and (report.rank in timed_out or None in (report.rank, *timed_out)):
            continue
        error = own_error(lines, report.line, tracebacks.inside) if report.failure in ENDS_ITSELF else None
        meaning = meaning_of([error.text]) if error else None
        if error and (meaning is None or meaning.kind != ReportKind.CONSEQUENCE):
            rank = report.rank if error.rank is None and report.failure != EXIT_CODE else error.rank
            yield FailureReport(OWN_ERROR, ReportKind.CAUSE, rank, 0.0, error)


def _still_missing(reports: Iterable[FailureReport], lines: Sequence[Line]) -> Iterator[FailureReport]:
    """Yield the reports without those of missing ranks that arrived after all, as the progress afterwards shows."""
    latest: dict[str, int] = {}
    for line in lines:
        if PROGRESS.search(line.text):
            latest[line.file] = line.number
    for report in reports:
        if report.failure != "missing rank" or latest.get(report.line.file, 0) < report.line.number:
            yield report


def _weighed(
    reports: list[FailureReport], lines: Sequence[Line], world_size: int, unranked: int
) -> list[FailureReport]:
    """The reports in the light of each other: what follows from a different rank's failure is no cause."""
    reports = [_with_better_name(report, reports, lines, world_size) for report in reports]
    together = _Together(tuple(reports), unranked)
    return [replace(report, kind=ReportKind.CONSEQUENCE) if together.explain(report) else report for report in reports]


def _not_survived(reports: list[FailureReport], lines: Sequence[Line]) -> list[FailureReport]:
    """The exceptions after which their writer did not go on as before."""
    if not reports:
        return []
    progress: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    position = {_key(report.line): 0 for report in reports}
    for index, line in enumerate(lines):
        if PROGRESS.search(line.text):
            progress[line.file, line.rank].append(index)
        if _key(line) in position:
            position[_key(line)] = index

    def is_survived(report: FailureReport) -> bool:
        steps = progress[report.line.file, report.line.rank]
        return len(steps) - bisect(steps, position[_key(report.line)]) >= MANY_STEPS

    return [report for report in reports if not is_survived(report)]


@dataclass(frozen=True)
class _Together:
    """All reports of a launch, in the light of which each of them is judged.

    Attributes:
        reports: of all ranks.
        unranked: how many processes raised an exception without a word of which rank they are.
    """

    reports: tuple[FailureReport, ...]
    unranked: int = 0

    def explain(self, report: FailureReport) -> bool:
        """Whether a report follows from a different one."""
        if report.failure in YIELDING:
            return bool(self.causes) or (report.failure == "wrong rank count" and self.somebody_is_unreachable)
        if report.failure in FROM_OUTSIDE:
            return any(_is_before(failed, report) for failed in self.failed_by_themselves)
        if report.failure in IMPLIED:
            if report.rank is None:
                return self.somebody_complains or self.has_better_sign or self.a_watchdog_ended(report)
            return report.rank in self.ranks_that_explain or self.names_a_rank or self.all_raised
        return False

    @cached_property
    def causes(self) -> bool:
        """Whether there is a cause that follows from nothing."""
        weaker = YIELDING | FROM_OUTSIDE
        return any(report.kind == ReportKind.CAUSE and report.failure not in weaker for report in self.reports)

    @cached_property
    def somebody_is_unreachable(self) -> bool:
        return any(report.failure == "unreachable node" for report in self.reports)

    @cached_property
    def failed_by_themselves(self) -> list[FailureReport]:
        """Reports of what went wrong before anybody ended the job."""
        return [
            report
            for report in self.reports
            if report.failure not in FROM_OUTSIDE | HARMLESS
            and (report.kind != ReportKind.CONSEQUENCE or report.failure == "collective timeout")
        ]

    @cached_property
    def ranks_that_explain(self) -> set[int | None]:
        """The ranks of which more is said than that they ended."""
        return {report.rank for report in self.reports if report.failure not in IMPLIED and report.rank is not None}

    @cached_property
    def names_a_rank(self) -> bool:
        return any(report.failure in NAMES_A_RANK for report in self.reports)

    @cached_property
    def all_raised(self) -> bool:
        """Whether there is an exception, if only one without a rank, for each rank that ended with an error."""
        ended = {report.rank for report in self.reports if report.failure == EXIT_CODE and report.rank is not None}
        return 0 < len(ended) <= self.unranked

    @cached_property
    def somebody_complains(self) -> bool:
        return any(report.kind == ReportKind.CONSEQUENCE and report.rank is None for report in self.reports)

    def a_watchdog_ended(self, report: FailureReport) -> bool:
        """Whether a process may have aborted itself because a collective of it had timed out."""
        return report.failure == "aborted" and any(
            other.failure == "collective timeout" and _is_before(other, report) for other in self.reports
        )

    @cached_property
    def has_better_sign(self) -> bool:
        """Whether a process is known to have ended with a signal, or a rank with an error."""
        return any(
            report.kind == ReportKind.SIGN and (report.failure not in IMPLIED or report.rank is not None)
            for report in self.reports
        )


def _is_before(report: FailureReport, other: FailureReport) -> bool:
    """Whether a report is earlier, or stands above one of the same time in the same file."""
    if report.time != other.time:
        return report.time < other.time
    return report.line.file == other.line.file and report.line.number < other.line.number


def _with_better_name(
    report: FailureReport, reports: Sequence[FailureReport], lines: Sequence[Line], world_size: int
) -> FailureReport:
    """The report under the name that the rest of the log suggests."""
    if report.failure == "extension not built" and 0 < len(_ranks(report, reports)) < world_size:
        return replace(report, failure="different software")
    if report.failure == "address in use" and _several_launchers_on_a_node(lines):
        return replace(report, failure="two torchruns")
    if report.failure == "FileNotFoundError" and _was_written(report, lines):
        return replace(report, failure="no shared files")
    return report


def _was_written(report: FailureReport, lines: Sequence[Line]) -> bool:
    """Whether another line tells that the file that is missing was written."""
    found = _MISSING_FILE.search(report.line.text)
    return found is not None and any(found[1] in line.text and _WROTE.search(line.text) for line in lines)


def _ranks(report: FailureReport, reports: Iterable[FailureReport]) -> set[int]:
    """The ranks that report the same failure."""
    return {other.rank for other in reports if other.failure == report.failure and other.rank is not None}


def _several_launchers_on_a_node(lines: Sequence[Line]) -> bool:
    """Whether a node started several torchruns.

    That shows in process numbers close to each other, or in more torchruns, or tasks of srun, than nodes.
    """
    pids = sorted({int(found[1]) for line in lines if (found := _TORCHRUN_AGENT.match(unmarked(line.text)))})
    if pids:
        return any(second - first < _NEAR_PIDS for first, second in zip(pids, pids[1:]))
    begun = sum(bool(_TORCHRUN_BEGINS.search(line.text)) for line in lines)
    tasks = [found for line in lines if (found := _TASKS.search(line.text))]
    nodes = {found[1] for found in tasks}
    announced = max((task + 1 for found in tasks for task in tasks_of(found[2])), default=0)
    return begun > 1 and max(begun, announced) > len(nodes) > 0


def telling_lines(lines: Sequence[Line], most: int = 3) -> list[Line]:
    """The first lines that speak of errors, without warnings and rulers, or the last line."""
    errors = [line for line in lines if is_error(line)]
    different = {line.text.strip(): line for line in reversed(errors)}
    return [line for line in errors if different[line.text.strip()] is line][:most] or list(lines[-1:])
