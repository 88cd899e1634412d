"""The manager: a replica's connection to the lighthouse. It reports, and waits for the quorum of the next step."""

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from course_utils.tcp_store import tcp_store


class NextQuorum(NamedTuple):
    """The members of the next step, and whether they need a new process group.

    Attributes:
        members: the replicas that take part, in ascending order; the first has rank 0.
        heals: the rank of each newcomer → the rank of its peer.
        prefix: of the keys with which the members meet in a new process group; empty if their present group stays.
    """

    members: list[int]
    heals: dict[int, int]
    prefix: str


@dataclass
class Manager:
    """Stands between a replica's training loop and the lighthouse.

    Attributes:
        replica: its number.
        process: number of the process; a replica that was started again has a new one.
        steps: after so many it ends.
        dies_at: kill it in the step after so many; -1 for never.
        save_every: steps between two checkpoints; 0 for none.
        folder: of the checkpoints.
        port: of the lighthouse.
        timeout: seconds, for a message of another replica, and for the lighthouse's answer.
        store: the lighthouse's, once this manager is connected.
    """

    replica: int
    process: int
    steps: int
    dies_at: int
    save_every: int
    folder: Path
    port: int
    timeout: float
    store: Any = None
    _reports: int = 0
    _group: int = 0
    _failed: bool = False
    _loss: float | None = None

    @classmethod
    def from_command_line(cls, arguments: Sequence[str] = ()) -> "Manager":
        """Return the manager that the program's only argument describes, connected to the lighthouse.

        From now on this process ends when the one that started it does.
        """
        given = json.loads((arguments or sys.argv[1:])[0])
        manager = cls(**{**given, "folder": Path(given["folder"])})
        threading.Thread(target=end_with_the_pipe, daemon=True).start()
        manager.store = tcp_store("127.0.0.1", manager.port, 1, manager.patience, serve=False)
        return manager

    @property
    def patience(self) -> timedelta:
        """How long to wait for a message."""
        return timedelta(seconds=self.timeout)

    def next_quorum(self, step: int) -> NextQuorum:
        """Report how many steps this replica's state includes, and wait for the lighthouse's answer.

        If others take part than before, or the last step has failed, the members need a new process group.
        """
        answer = json.loads(self._ask(step))
        members, group = answer["members"], answer["group"]
        prefix = f"group/{group}" if group != self._group else ""
        self._group = group
        heals = {members.index(newcomer): members.index(peer) for newcomer, peer in answer["heals"]}
        return NextQuorum(members, heals, prefix)

    def _ask(self, step: int) -> bytes:
        number = self._report(step, finished=False)
        return self.store.get(f"quorum/{self.process}/{number}")

    def _report(self, step: int, finished: bool) -> int:
        number, self._reports = self._reports, self._reports + 1
        report = {"step": step, "failed": self._failed, "finished": finished, "loss": self._loss}
        self.store.set(f"report/{self.process}/{number}", json.dumps(report))
        self._failed, self._loss = False, None
        return number

    def completed(self, state: torch.Tensor, loss: float) -> None:
        """Note a step that this replica has completed; its next report mentions it."""
        self.store.set(f"state/{self.process}/{self._reports}", state.numpy().tobytes())
        self._loss = loss

    def failed(self) -> None:
        """Note that the step has failed, because a member is gone."""
        self._failed = True
        self.leave()

    def leave(self) -> None:
        """Leave the process group, if there is one. A member that still waits for this replica there gets an error."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def finish(self, step: int) -> None:
        """Make the last report."""
        self._report(step, finished=True)
        self.leave()


def end_with_the_pipe() -> None:
    """End this process when its standard input is closed: the process that started it is gone, too."""
    while os.read(0, 1):  # not sys.stdin, whose lock the interpreter wants at its end
        pass
    os._exit(1)
