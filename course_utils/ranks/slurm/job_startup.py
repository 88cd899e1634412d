"""A job from its submission until its ranks are there: what it waits for, and why they will never come."""

import os
import time
from collections.abc import Callable

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.launch_ranks import log_of
from course_utils.ranks.processes.ranks_folder import RanksFolder, shared_root
from course_utils.ranks.slurm.hub import HubConnection
from course_utils.ranks.slurm.job_sentences import end_text, findings_text, waiting_text
from course_utils.ranks.slurm.job_status import EndCause, JobEnd, end_of_status, status_of, wait_for_end
from course_utils.ranks.slurm.node_trial import findings_of

QUEUE_SECONDS = 24 * 3600.0
"""How long a job may wait in the queue; the learner can interrupt the cell at any time."""
_ASK_SECONDS = 2.0
"""Between two questions to Slurm, whose controller serves the whole site."""
_SLURM_SECONDS = 5.0
"""How long Slurm may take to say that a job is over of which a rank has ended."""


def startup_check(folder: RanksFolder, bar: ProgressBar) -> Callable[[], None]:
    """To be called while a job waits and its ranks come up; raises `CourseError` when they never will."""
    began, number, hub = time.monotonic(), folder.facts()["job"], HubConnection(folder, asks=True)
    asked = 0.0

    def check() -> None:
        nonlocal asked
        bar.refresh()
        if time.monotonic() - asked < _ASK_SECONDS:
            return
        asked = time.monotonic()
        status = status_of(number)
        bar.say(waiting_text(number, status))
        end = end_of_status(number, status)
        if end is None and (ended := _ended_rank(hub)):
            end = wait_for_end(number, _SLURM_SECONDS)
            if end is None:
                raise CourseError(_with_log(folder, f"The ranks did not start. {status_text(*ended)}"))
        if end and end.cause is not EndCause.SUSPENDED:
            raise CourseError(failed_start_text(folder, end))
        if time.monotonic() - began > QUEUE_SECONDS:
            raise CourseError(f"Slurm's job {number} has waited for a day; it is cancelled.")

    return check


def failed_start_text(folder: RanksFolder, end: JobEnd) -> str:
    """Why the ranks of a job that is over never came."""
    if end.cause is EndCause.SCRIPT_ENDED and (findings := findings_of(folder, end.status.exit_code)):
        why = findings_text(findings, _shared_name(), settings.INTERFACE.value())
        return f"The ranks did not start. {why}"
    return _with_log(folder, f"The ranks did not start. {end_text(end)}")


def _ended_rank(hub: HubConnection) -> tuple[str, int] | None:
    """A rank that has ended before all have introduced themselves, and its exit status; None while there is none."""
    reports = hub.ask({"reports": True}) or {}
    ended = {rank: report["ended"] for rank, (_, report) in reports.items() if report["ended"] is not None}
    return next(((f"rank {rank}", status) for rank, status in ended.items()), None)


def _shared_name() -> str:
    """The folder that all nodes must see, as people name it."""
    root = shared_root()
    return f"{settings.SHARED.name}={root}" if os.environ.get(settings.SHARED.name) else str(root)


def _with_log(folder: RanksFolder, text: str) -> str:
    """The text, and what controller and ranks wrote last, if they wrote anything."""
    wrote = log_of(folder)
    return f"{text} What they wrote:\n{wrote}" if wrote else text
