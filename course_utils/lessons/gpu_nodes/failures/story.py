"""The story of a failed launch: which report is the cause, which ranks share it, and what else was reported."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from course_utils.lessons.gpu_nodes.failures.log_line import Line


class ReportKind(IntEnum):
    """What a report tells you about the failure. The smaller the number, the more it explains."""

    CAUSE = 0
    """Why a rank or the whole job failed, such as an exception in its program."""
    SIGN = 1
    """That a rank failed, but not why, such as an exit code."""
    CONSEQUENCE = 2
    """That a rank could not go on because another rank failed: a timeout, a lost connection, no answer."""


@dataclass(frozen=True)
class FailureReport:
    """What a line of a log reports.

    Attributes:
        failure: its name, such as "out of memory". Reports with the same name are about the same failure.
        kind: whether it is a cause, a sign or a consequence.
        rank: the rank that the report is about, whoever wrote the line; None if it is about the whole job.
        time: in seconds since 1970; a line without a clock has the time of the line before it.
        line: the line that shows it.
    """

    failure: str
    kind: ReportKind
    rank: int | None
    time: float
    line: Line


@dataclass(frozen=True)
class Story:
    """Why a launch failed.

    Attributes:
        cause: the report that explains the most.
        ranks: those with a report of the same failure as the cause, sorted.
        others: the reports of all other failures, the earliest first.
        silent: the ranks that no report is about, sorted.
    """

    cause: FailureReport
    ranks: tuple[int, ...]
    others: tuple[FailureReport, ...]
    silent: tuple[int, ...]


def explain_failure(reports: Sequence[FailureReport], world_size: int) -> Story | None:
    """Find the cause of a failed launch among the reports about its ranks.

    The cause is a report of the smallest kind, because such a report explains the most. If several
    have this kind, it is the earliest of them. If these are equally early, it is the one that comes
    first in `reports`.

    Args:
        reports: what the lines of the log report, in any order.
        world_size: the number of ranks.

    Returns:
        The story, or None if there are no reports. `ranks` contains the ranks with a report of the
        same failure as the cause. `others` contains the reports of all other failures, of any kind,
        sorted by time; ties keep the order of `reports`. `silent` contains the ranks that no report
        is about. Both lists of ranks are sorted and without duplicates. None stands for the whole
        job, so it is in neither of them.
    """
    if not reports:
        return None
    in_time = sorted(reports, key=lambda report: report.time)
    # The first of several minima, so the earliest.
    cause = min(in_time, key=lambda report: report.kind)
    same = {report.rank for report in reports if report.failure == cause.failure and report.rank is not None}
    others = tuple(report for report in in_time if report.failure != cause.failure)
    heard = {report.rank for report in reports}
    silent = tuple(rank for rank in range(world_size) if rank not in heard)
    return Story(cause, tuple(sorted(same)), others, silent)
