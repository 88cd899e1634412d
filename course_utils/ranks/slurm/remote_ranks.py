"""Ranks on other nodes, looked after without asking them: as `LocalRanks`, for the ranks of a batch job.

Each has a minder beside it, a small process (see `minder`). Notebook and minders meet at the hub (see `hub`).
"""

import re
import time

from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.batch_job import MORE_MEMORY, over_text
from course_utils.ranks.slurm.hub import HubLine
from course_utils.ranks.slurm.node_agent import IDLE_SECONDS, MinderReport
from course_utils.trace.activity import IDLE, Activity
from course_utils.words import ranks_in_words

SILENT_SECONDS = 60.0
"""A minder that has told nothing for so long is gone, and its node with it."""
_LOOK_SECONDS = 0.05
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
    """Ranks of a batch job, each seen and told through the hub that their minders talk to."""

    lag = 2 * IDLE_SECONDS

    def __init__(self, folder: RanksFolder, ranks: int, job: str) -> None:
        self.folder, self.job, self._hub = folder, job, HubLine(folder, asks=True)
        self._reports = [MinderReport(IDLE, 0, "")] * ranks
        self._heard = [time.monotonic()] * ranks
        self._looked = 0.0

    def dead(self) -> list[int]:
        self._look()
        silent = time.monotonic() - SILENT_SECONDS
        return [rank for rank, one in enumerate(self._reports) if one.ended is not None or self._heard[rank] < silent]

    def activity(self, rank: int) -> Activity:
        self._look()
        seen = self._reports[rank]
        return Activity(seen.state, seen.progress, 0.0, seen.text, seen.look.encode(), seen.begun)

    def computed(self, rank: int) -> float:
        self._look()
        return self._reports[rank].computed

    def wants_to_run(self, rank: int) -> bool:
        return False  # their minders tell what they have computed

    def place(self, rank: int) -> str:
        return ""  # its dumps lie on its own node

    def interrupt(self, rank: int) -> None:
        self._hub.ask({"rank": rank, "order": "interrupt"})

    def kill(self, rank: int) -> None:
        self._hub.ask({"rank": rank, "order": "kill"})

    def how_it_ended(self) -> str:
        deadline = time.monotonic() + (_SECONDS_FOR_SLURM if any(one.asked for one in self._reports) else 0.0)
        while (over := over_text(self.job)) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        if short_of_memory(self.folder):
            return f"a rank of Slurm's job {self.job} took more memory than the job may use: {MORE_MEMORY}."
        if over:
            return over
        ended = [(rank, one.ended) for rank, one in enumerate(self._reports) if one.ended is not None]
        if not ended:
            return f"{ranks_in_words(self.dead())} cannot be reached any more: the node has failed, or the network."
        rank, status = next((pair for pair in ended if pair[1] != 0), ended[0])
        return status_text(f"rank {rank}", status)

    def _look(self) -> None:
        """Ask for what the minders have told last, if that is not just done."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        answer = self._hub.ask({"look": True}) or {}
        self._looked = time.monotonic()
        for rank, (age, report) in answer.items():
            self._reports[int(rank)], self._heard[int(rank)] = MinderReport(**report), self._looked - age
