"""Ranks on other nodes, looked after without asking them: as `LocalRanks`, for the ranks of a batch job.

Beside each runs a `node_agent`, a small process. Notebook and node agents meet at the `hub`.
"""

import re
import time

from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.batch_job import MORE_MEMORY, over_text
from course_utils.ranks.slurm.hub import HubConnection
from course_utils.ranks.slurm.node_agent import IDLE_SECONDS, NodeReport
from course_utils.trace.activity import IDLE, Activity
from course_utils.trace.standing import Standing
from course_utils.words import ranks_in_words

SILENT_SECONDS = 60.0
"""A node agent that has sent nothing for so long is gone, and its node with it."""
_REFRESH_SECONDS = 0.05
_SECONDS_FOR_THE_LOG = 1.0
_SECONDS_FOR_SLURM = 10.0
"""How long Slurm may take to say why it ends a job, after its ranks have been told to end."""
_MEMORY = re.compile(r"exceeded (job )?memory limit|oom_kill|Out Of Memory", re.IGNORECASE)
"""What slurmstepd writes where it ends a process, or has the kernel end it, for its memory."""


def short_of_memory(folder: RanksFolder) -> bool:
    """Has Slurm ended ranks for their memory? It may take a moment to say so."""
    deadline = time.monotonic() + _SECONDS_FOR_THE_LOG
    log = folder.path / "ranks.log"
    while not (found := log.exists() and _MEMORY.search(log.read_text(errors="replace"))):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return bool(found)


class RemoteRanks:
    """Ranks of a batch job, each seen and told through the hub that their node agents talk to."""

    lag = 2 * IDLE_SECONDS

    def __init__(self, folder: RanksFolder, ranks: int, job: str) -> None:
        self.folder, self.job, self._hub = folder, job, HubConnection(folder, asks=True)
        self._reports = [NodeReport(IDLE, 0, "")] * ranks
        self._reported_at = [time.monotonic()] * ranks
        self._refreshed_at = 0.0

    def dead(self) -> list[int]:
        self._refresh()
        silent = time.monotonic() - SILENT_SECONDS
        return [
            rank
            for rank, report in enumerate(self._reports)
            if report.ended is not None or self._reported_at[rank] < silent
        ]

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
        deadline = time.monotonic() + (
            _SECONDS_FOR_SLURM if any(report.asked_to_end for report in self._reports) else 0.0
        )
        while (over := over_text(self.job)) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        if short_of_memory(self.folder):
            return f"a rank of Slurm's job {self.job} took more memory than the job may use: {MORE_MEMORY}."
        if over:
            return over
        ended = [(rank, report.ended) for rank, report in enumerate(self._reports) if report.ended is not None]
        if not ended:
            return f"{ranks_in_words(self.dead())} cannot be reached any more: the node has failed, or the network."
        rank, status = next((pair for pair in ended if pair[1] != 0), ended[0])
        return status_text(f"rank {rank}", status)

    def _refresh(self) -> None:
        """Ask for the latest reports of the node agents, unless that has just been done."""
        if time.monotonic() - self._refreshed_at < _REFRESH_SECONDS:
            return
        answer = self._hub.ask({"reports": True}) or {}
        self._refreshed_at = time.monotonic()
        for rank, (age, report) in answer.items():
            self._reports[int(rank)], self._reported_at[int(rank)] = NodeReport(**report), self._refreshed_at - age
