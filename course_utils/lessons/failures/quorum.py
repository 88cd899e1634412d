"""Who takes part in the next step, and who has to be healed first.

After each step, every replica reports to a server, the lighthouse, how many steps its state includes. From these
reports the lighthouse forms a **quorum**: the replicas that take part in the next step, and for each replica that is
behind, a living peer from which it gets the newest state.
"""

from collections.abc import Sequence
from typing import NamedTuple

from course_utils.errors import CourseError


class StepReport(NamedTuple):
    """A replica's report that it is alive.

    Attributes:
        replica: its number.
        step: how many steps its state includes.
        at: when the report arrived, in seconds.
    """

    replica: int
    step: int
    at: float


def quorum(
    reports: Sequence[StepReport], now: float, timeout: float, min_replicas: int
) -> tuple[list[int], dict[int, int]]:
    """Return who takes part in the next step, and which of them must be healed from whom.

    A replica takes part if its newest report, the one with the largest `at`, is at most `timeout`
    seconds old. Older reports of the same replica do not count at all. The newest state is the one
    with the most steps among those that take part. A replica with fewer steps is a newcomer, and is
    healed from a replica with the newest state. If there are several of these, the newcomers are
    assigned to them in turn, both in ascending order.

    Args:
        reports: in any order; a replica may have sent several, at different times, or none.
        now: the time of the decision, in seconds.
        timeout: the greatest age of a report, in seconds.
        min_replicas: so many must take part at least, 1 or more.

    Returns:
        The members in ascending order, and newcomer → peer. Both are empty if fewer than
        `min_replicas` are alive, because then no step may be taken.

    Raises:
        CourseError: `min_replicas` is below 1.
    """
    if min_replicas < 1:
        raise CourseError(f"At least one replica must take part, not {min_replicas}.")
    # Of each replica only the newest report counts, even if it has fewer steps than an older one.
    newest = {report.replica: report for report in sorted(reports, key=lambda report: report.at)}
    steps = {r: report.step for r, report in sorted(newest.items()) if now - report.at <= timeout}
    if len(steps) < min_replicas:
        return [], {}
    last = max(steps.values())
    peers = [replica for replica, step in steps.items() if step == last]
    newcomers = [replica for replica, step in steps.items() if step < last]
    return list(steps), {newcomer: peers[i % len(peers)] for i, newcomer in enumerate(newcomers)}
