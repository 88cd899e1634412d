"""Ranks of this machine, looked after without asking them: who lives, what each does, how one is interrupted or ended.

They are seen by their process numbers, and share a mapped file with the notebook.
"""

import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Protocol

from course_utils.ranks.processes.exit_status import describe_end
from course_utils.ranks.processes.fault_dump import find_line
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.processes.standing_questions import ask_standing
from course_utils.system import cpu_seconds, started_at, wants_to_run
from course_utils.trace.activity import RUNNING, TESTING, Activity, ActivityFile
from course_utils.trace.standing import Standing


class ProcessControl(Protocol):
    """What a notebook can see of its ranks, and do to them.

    Attributes:
        lag: by how many seconds what is seen of one rank may be older than what is seen of another.
    """

    lag: float

    def dead(self) -> list[int]:
        """Ranks that have ended."""

    def activity(self, rank: int) -> Activity:
        """What a rank does right now."""

    def computed(self, rank: int) -> float:
        """CPU seconds of a rank so far."""

    def wants_to_run(self, rank: int) -> bool:
        """Does a rank compute, or wait for a processor that others use? False where that cannot be seen."""

    def source_line(self, rank: int) -> str:
        """The learner's line in which a rank is that does not answer; "" where that cannot be seen."""

    def standing(self, rank: int) -> Standing:
        """Where the code of a rank is; empty where that cannot be seen."""

    def interrupt(self, rank: int) -> None:
        """Ask a rank that waits to stop waiting; interrupt one that computes."""

    def kill(self, rank: int) -> None:
        """End a rank that will not listen."""

    def how_it_ended(self) -> str:
        """A sentence on the rank that died first."""


class LocalProcesses:
    """Ranks that are processes of this machine."""

    lag = 0.02

    def __init__(self, pids: Sequence[int], activities: Sequence[ActivityFile]) -> None:
        self.pids, self._activity = list(pids), list(activities)
        self._started = [started_at(pid) for pid in self.pids]

    def dead(self) -> list[int]:
        pairs = enumerate(zip(self.pids, self._started, strict=True))
        return [rank for rank, (pid, start) in pairs if start is None or started_at(pid) != start]

    def activity(self, rank: int) -> Activity:
        return self._activity[rank].read()

    def computed(self, rank: int) -> float:
        with contextlib.suppress(OSError):  # it has ended
            return cpu_seconds(self.pids[rank])
        return 0.0

    def wants_to_run(self, rank: int) -> bool:
        return wants_to_run(self.pids[rank])

    def standing(self, rank: int) -> Standing:
        return Standing()

    def interrupt(self, rank: int) -> None:
        self._activity[rank].ask_to_stop()
        if self.activity(rank).state in (RUNNING, TESTING):
            self.send_signal(rank, signal.SIGINT)

    def kill(self, rank: int) -> None:
        self.send_signal(rank, signal.SIGKILL)

    def send_signal(self, rank: int, number: int) -> None:
        """Send a rank a signal, if it still lives."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pids[rank], number)


class LocalRanks(LocalProcesses):
    """Ranks of a folder."""

    def __init__(self, folder: RanksFolder, pids: Sequence[int], shells: Sequence[int]) -> None:
        """`shells`: for each rank the process of the shell that waits for its end."""
        super().__init__(pids, [ActivityFile(folder.activity_file(rank)) for rank in range(len(pids))])
        self.folder, self._shells = folder, list(shells)

    def source_line(self, rank: int) -> str:
        return find_line(self.folder.fault_file(rank), lambda number: self.send_signal(rank, number))

    def standing(self, rank: int) -> Standing:
        return ask_standing(self.folder.question_file(rank), self._activity[rank])

    def how_it_ended(self) -> str:
        return describe_end(self.folder, {rank: self._shells[rank] for rank in self.dead()})
