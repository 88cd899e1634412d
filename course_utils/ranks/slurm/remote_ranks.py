"""Ranks on other nodes, looked after without asking them: as `LocalRanks`, for the ranks of a batch job.

Beside each runs a `node_agent`, a small process. Notebook and node agents meet at the `hub`.
"""

import re
import signal
import time
from collections.abc import Sequence

from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.hub import HubConnection
from course_utils.ranks.slurm.job_sentences import MORE_MEMORY, end_text, silent_ranks_text, unexplained_end_text
from course_utils.ranks.slurm.job_status import EndCause, JobEnd, end_of, nodes_down, wait_for_end, with_node_down
from course_utils.ranks.slurm.node_agent import IDLE_SECONDS, NodeReport
from course_utils.trace.activity import IDLE, Activity
from course_utils.trace.standing import Standing

SILENT_SECONDS = 60.0
"""A node agent that has sent nothing for so long is gone, and its node with it."""
_DOUBTFUL_SECONDS = 10.0
"""After so long Slurm is asked: it may know that the node is down, or that the job stands still."""
_ASK_SECONDS = 5.0
"""Between two questions to Slurm, whose controller serves the whole site."""
_REFRESH_SECONDS = 0.05
_SECONDS_FOR_THE_LOG = 1.0
_SECONDS_FOR_SLURM = 30.0
"""How long Slurm may take to say why it ends a job, after its ranks have been told to end."""
_MEMORY = re.compile(r"exceeded (job )?memory limit|oom_kill|Out Of Memory", re.IGNORECASE)
"""What slurmstepd writes where it ends a process, or has the kernel end it, for its memory."""
_NODE_FAILURE = re.compile(r"Node failure on (\S+)")
"""What srun writes where Slurm has taken a node from the job."""


def short_of_memory(folder: RanksFolder) -> bool:
    """Has Slurm ended ranks for their memory? It may take a moment to say so."""
    deadline = time.monotonic() + _SECONDS_FOR_THE_LOG
    log = folder.path / "ranks.log"
    while not (found := log.exists() and _MEMORY.search(log.read_text(errors="replace"))):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return bool(found)


def failed_node(folder: RanksFolder) -> str:
    """The node that srun says has failed; "" where it names none."""
    log = folder.path / "ranks.log"
    found = _NODE_FAILURE.search(log.read_text(errors="replace")) if log.exists() else None
    return found[1] if found else ""


class RemoteRanks:
    """Ranks of a batch job, each seen and told through the hub that their node agents talk to."""

    lag = 2 * IDLE_SECONDS

    def __init__(self, folder: RanksFolder, nodes: Sequence[str], job: str) -> None:
        """`nodes`: of each rank, the name of the node that it is on."""
        self.folder, self.job, self._hub = folder, job, HubConnection(folder, asks=True)
        self._nodes = list(nodes)
        self._reports = [NodeReport(IDLE, 0, "")] * len(nodes)
        self._reported_at = [time.monotonic()] * len(nodes)
        self._refreshed_at = self._asked_at = 0.0
        self._ended_at: dict[int, float] = {}
        self._end: JobEnd | None = None
        self._why = ""

    def dead(self) -> list[int]:
        self._refresh()
        for rank, report in enumerate(self._reports):
            if report.ended is not None:
                self._ended_at.setdefault(rank, time.monotonic())
        settled = time.monotonic() - self.lag  # what the others do may not have come yet, and is compared with it
        ended = [rank for rank, ended_at in self._ended_at.items() if ended_at < settled]
        limit = SILENT_SECONDS
        if self._silent(_DOUBTFUL_SECONDS) and self._known_end():
            limit = _DOUBTFUL_SECONDS
        return sorted({*ended, *self._silent(limit)})

    def _silent(self, seconds: float) -> list[int]:
        """The ranks of which nothing has been heard for so long."""
        since = time.monotonic() - seconds
        return [rank for rank, reported_at in enumerate(self._reported_at) if reported_at < since]

    def _known_end(self) -> JobEnd | None:
        """Why the job is over or stands still, as far as Slurm has said so; a suspended one may go on."""
        final = self._end and self._end.cause is not EndCause.SUSPENDED
        if not final and time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._asked_at = time.monotonic()
            self._end = end_of(self.job, has_begun=True)
        return self._end

    def activity(self, rank: int) -> Activity:
        self._refresh()
        report = self._reports[rank]
        return Activity(report.state, report.progress, 0.0, report.text, report.snapshot.encode(), report.begun)

    def computed(self, rank: int) -> float:
        self._refresh()
        return self._reports[rank].computed

    def wants_to_run(self, rank: int) -> bool:
        return False  # their node agents report what they have computed

    def source_line(self, rank: int) -> str:
        return ""  # its dumps lie on its own node

    def standing(self, rank: int) -> Standing:
        return Standing()

    def interrupt(self, rank: int) -> None:
        self._hub.ask({"rank": rank, "order": "interrupt"})

    def kill(self, rank: int) -> None:
        self._hub.ask({"rank": rank, "order": "kill"})

    def how_it_ended(self) -> str:
        if not self._why:
            text = self._end_text()
            self._why = text if self._end and self._end.cause is not EndCause.SUSPENDED else ""
            return text
        return self._why

    def _end_text(self) -> str:
        if self._end is None or self._end.cause is EndCause.SUSPENDED:
            self._end = wait_for_end(self.job, _SECONDS_FOR_SLURM if self._may_be_slurms_doing() else 0.0)
        undecided = self._end is None or self._end.cause in (EndCause.OUT_OF_MEMORY, EndCause.SCRIPT_ENDED)
        if undecided and short_of_memory(self.folder):
            return f"a rank of Slurm's job {self.job} took more memory than the job may use: {MORE_MEMORY}."
        if self._end:
            if self._end.cause is EndCause.NODE_DOWN and (node := failed_node(self.folder)):
                self._end = with_node_down(self._end, node)
            return end_text(self._end)
        ended = [(rank, report.ended) for rank, report in enumerate(self._reports) if report.ended is not None]
        if not ended:
            ranks = self.dead()
            names = list(dict.fromkeys(self._nodes[rank] for rank in ranks))
            return silent_ranks_text(ranks, names, nodes_down(",".join(names)), self.job)
        rank, status = next((pair for pair in ended if pair[1] != 0), ended[0])
        text = status_text(f"rank {rank}", status)
        return f"{text} {unexplained_end_text(self.job)}" if self._reports[rank].asked_to_end else text

    def _may_be_slurms_doing(self) -> bool:
        """Whether ranks were told to end, or have ended with their node agents: then Slurm will say why."""
        ended = [report for report in self._reports if report.ended is not None]
        return any(report.asked_to_end or report.ended == 128 + signal.SIGTERM for report in ended)

    def _refresh(self) -> None:
        """Ask for the latest reports of the node agents, unless that has just been done."""
        if time.monotonic() - self._refreshed_at < _REFRESH_SECONDS:
            return
        answer = self._hub.ask({"reports": True}) or {}
        self._refreshed_at = time.monotonic()
        for rank, (age, report) in answer.items():
            self._reports[int(rank)], self._reported_at[int(rank)] = NodeReport(**report), self._refreshed_at - age
