"""The lighthouse: a server that collects the replicas' reports and answers each of them with the next quorum.

Reports and answers go through torch's TCPStore, whose server runs in the lighthouse's process. Each process that was
started has a number of its own, and each of its reports, too, so that the report of a dead process is never taken for
one of its successor.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from course_utils.lessons.failures.quorum import StepReport, quorum

if TYPE_CHECKING:
    import torch.distributed as dist


class StepAttempt(NamedTuple):
    """A quorum that was formed.

    Attributes:
        step: how many steps the newest state included.
        members: the replicas that took part.
        heals: newcomer → the replica that it got the state from.
        group: number of the process group. A new one is made if the members change, or a step has failed.
        at: when it was formed, in seconds.
    """

    step: int
    members: tuple[int, ...]
    heals: dict[int, int]
    group: int
    at: float


class CompletedStep(NamedTuple):
    """A step that a replica has completed.

    Attributes:
        replica: its number.
        step: how many steps its state includes.
        loss: on the images of all who took part.
        state: after the step, (3, n).
        at: when the lighthouse heard of it, in seconds.
    """

    replica: int
    step: int
    loss: float
    state: np.ndarray
    at: float


@dataclass
class Lighthouse:
    """Forms a quorum as soon as all that are alive have reported, or `timeout` seconds after the first report.

    Attributes:
        store: the server's.
        min_replicas: with fewer, no step is taken.
        timeout: seconds.
        attempts, completed: what has happened so far.
        heard_at: when the last report arrived, in seconds.
        finished: numbers of the processes that have taken their last step.
    """

    store: "dist.TCPStore"
    min_replicas: int
    timeout: float
    attempts: list[StepAttempt] = field(default_factory=list)
    completed: list[CompletedStep] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)
    heard_at: float = 0.0
    _reports: dict[int, StepReport] = field(default_factory=dict)
    _read: dict[int, int] = field(default_factory=dict)
    _last: set[int] = field(default_factory=set)
    _failed: bool = False

    def listen(self, alive: Mapping[int, int]) -> None:
        """Read what the processes have reported since the last call.

        Args:
            alive: the number of each process → its replica.
        """
        for gone in self._reports.keys() - alive.keys():
            del self._reports[gone]
        for process, replica in alive.items():
            key = f"report/{process}/{self._read.get(process, 0)}"
            if self.store.check([key]):
                self._take(process, replica, json.loads(self.store.get(key)))

    def _take(self, process: int, replica: int, report: dict[str, Any]) -> None:
        number, now = self._read.get(process, 0), time.monotonic()
        self._read[process], self.heard_at = number + 1, now
        self._failed = self._failed or report["failed"]
        if report["loss"] is not None:
            state = np.frombuffer(self.store.get(f"state/{process}/{number}")).reshape(3, -1)
            self.completed.append(CompletedStep(replica, report["step"], report["loss"], state, now))
        if report["finished"]:
            self.finished.add(process)
        else:
            self._reports[process] = StepReport(replica, report["step"], now)

    def newest_step(self) -> int:
        """The most steps that a report waiting for an answer has."""
        return max((report.step for report in self._reports.values()), default=0)

    def answer(self, awaited: Mapping[int, int]) -> None:
        """Form a quorum and answer its members, unless reports are still on their way.

        Args:
            awaited: the number of each process whose report may count → its replica.
        """
        now = time.monotonic()
        reports = {process: report for process, report in self._reports.items() if process in awaited}
        first = min((report.at for report in reports.values()), default=now)
        if len(reports) < len(awaited) and now - first <= self.timeout:
            return
        members, heals = quorum(list(reports.values()), now, self.timeout, self.min_replicas)
        if not members:
            return
        before = self.attempts[-1] if self.attempts else None
        taking_part = {process for process, report in reports.items() if report.replica in members}
        is_new = self._failed or taking_part != self._last
        group = (before.group if before else 0) + is_new
        step = max(report.step for report in reports.values())
        self.attempts.append(StepAttempt(step, tuple(members), heals, group, now))
        answer = {"members": members, "heals": list(heals.items()), "group": group}
        self._failed, self._last = False, taking_part
        for process in taking_part:
            self.store.set(f"quorum/{process}/{self._read[process] - 1}", json.dumps(answer))
            del self._reports[process]
