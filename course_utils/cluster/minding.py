"""Minding ranks without asking them: who lives, what each does, and how one is told to stop or ended.

Ranks of this machine are seen by their process numbers, and share a mapped file with the notebook. Ranks on other nodes
have a minder there, a small process for each rank (see `minder`), and notebook and minders write each other files in
the ranks' folder, which all nodes share.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import Protocol

from course_utils.cluster.endings import describe_end, status_said
from course_utils.cluster.folder import RanksFolder, started_at
from course_utils.cluster.minder import Report, order_file, read_whole, report_file, write_whole
from course_utils.cluster.slurm import over_said
from course_utils.trace.activity import IDLE, RUNNING, Activity, ActivityFile
from course_utils.words import ranks_in_words

SILENT_SECONDS = 20.0
"""A minder that has written nothing for so long is gone, and its node with it."""
_LOOK_SECONDS = 0.05
_SECONDS_FOR_SLURM = 10.0
"""How long Slurm may take to say why it ends a job, after its ranks have been told to end."""


class Minded(Protocol):
    """What a notebook can see of its ranks, and do to them."""

    def dead(self) -> list[int]:
        """Ranks that have ended."""

    def activity(self, rank: int) -> Activity:
        """What a rank does right now."""

    def interrupt(self, rank: int) -> None:
        """Ask a rank that waits to stop waiting; interrupt one that computes."""

    def kill(self, rank: int) -> None:
        """End a rank that will not listen."""

    def how_it_ended(self) -> str:
        """A sentence on the rank that died first."""


class LocalRanks:
    """Ranks on this machine."""

    def __init__(self, folder: RanksFolder, pids: Sequence[int], shells: Sequence[int]) -> None:
        """`shells`: for each rank the process of the shell that waits for its end."""
        self.folder, self.pids, self._shells = folder, list(pids), list(shells)
        self._started = [started_at(pid) for pid in self.pids]
        self._activity = [ActivityFile(folder.activity_file(rank)) for rank in range(len(self.pids))]

    def dead(self) -> list[int]:
        pairs = enumerate(zip(self.pids, self._started, strict=True))
        return [rank for rank, (pid, start) in pairs if start is None or started_at(pid) != start]

    def activity(self, rank: int) -> Activity:
        return self._activity[rank].read()

    def interrupt(self, rank: int) -> None:
        self._activity[rank].ask_to_stop()
        if self.activity(rank).state == RUNNING:
            self._signal(rank, signal.SIGINT)

    def kill(self, rank: int) -> None:
        self._signal(rank, signal.SIGKILL)

    def how_it_ended(self) -> str:
        return describe_end(self.folder, {rank: self._shells[rank] for rank in self.dead()})

    def _signal(self, rank: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pids[rank], number)


class RemoteRanks:
    """Ranks of a batch job, each seen and told through the files that it shares with its minder."""

    def __init__(self, folder: RanksFolder, ranks: int, job: str) -> None:
        self.folder, self.job = folder, job
        self._reports = [Report(0, IDLE, 0, "") for _ in range(ranks)]
        self._heard = [time.monotonic()] * ranks
        self._looked = 0.0

    def dead(self) -> list[int]:
        self._look()
        silent = time.monotonic() - SILENT_SECONDS
        return [rank for rank, one in enumerate(self._reports) if one.ended is not None or self._heard[rank] < silent]

    def activity(self, rank: int) -> Activity:
        self._look()
        seen = self._reports[rank]
        return Activity(seen.state, seen.progress, 0.0, seen.text)

    def interrupt(self, rank: int) -> None:
        self._order(rank, "interrupt")

    def kill(self, rank: int) -> None:
        self._order(rank, "kill")

    def how_it_ended(self) -> str:
        deadline = time.monotonic() + (_SECONDS_FOR_SLURM if any(one.asked for one in self._reports) else 0.0)
        while (over := over_said(self.job)) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        if over:
            return over
        ended = [(rank, one.ended) for rank, one in enumerate(self._reports) if one.ended is not None]
        if not ended:
            return f"{ranks_in_words(self.dead())} cannot be reached any more: the node has failed, or the network."
        rank, status = next((pair for pair in ended if pair[1] != 0), ended[0])
        return status_said(rank, status)

    def _order(self, rank: int, what: str) -> None:
        write_whole(order_file(self.folder, rank), {"number": time.time_ns(), "what": what})

    def _look(self) -> None:
        """Read what the minders have written, if that is not just done."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        for rank, before in enumerate(self._reports):
            found = read_whole(report_file(self.folder, rank))
            if found is not None and found["beat"] != before.beat:
                self._reports[rank], self._heard[rank] = Report(**found), now
