"""The story of a failed launch: which report is the cause, who else makes it, and what only follows from it."""

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
    """That a rank could not go on because of a different one: a timeout, a lost connection, no answer."""


@dataclass(frozen=True)
class FailureReport:
    """What a line of a log reports.

    Attributes:
        failure: its name, such as "out of memory".
        kind: whether it is a cause, a sign or a consequence.
        rank: which rank failed or complains; None if it is the whole job.
        time: in seconds since 1970; lines without a clock have the time of the line before them.
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
        ranks: those that report the same failure as the cause, sorted.
        consequences: the reports of all other failures, in the order of time.
        silent: the ranks that report nothing, sorted.
    """

    cause: FailureReport
    ranks: tuple[int, ...]
    consequences: tuple[FailureReport, ...]
    silent: tuple[int, ...]


def explain_failure(reports: Sequence[FailureReport], world_size: int) -> Story | None:
    """Find the cause of a failed launch among what its ranks report.

    The cause is a report of the smallest kind, because such a report explains the most. If several
    have this kind, it is the earliest of them. If these are equally early, it is the one that comes
    first in `reports`.

    Args:
        reports: what the lines of the log report, in any order.
        world_size: the number of ranks.

    Returns:
        The story, or None if there are no reports. `ranks` holds those that report the same failure
        as the cause. `consequences` holds the reports of all other failures, the earliest first, and
        reports of the same time as they are in `reports`. `silent` holds the ranks of which there is
        no report. Ranks are sorted, each is there once, and None, the whole job, is not a rank.
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
