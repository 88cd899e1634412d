"""Start the replicas as real processes, serve them as their lighthouse, and start new ones for those that die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.failures.lighthouse import CompletedStep, Lighthouse, StepAttempt
from course_utils.machine import ranks_python
from course_utils.system import LOOPBACK
from course_utils.tcp_store import tcp_store

PAUSE = 0.002
"""Seconds between two looks at the store."""
QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "GLOO_SOCKET_IFNAME": LOOPBACK}


@dataclass
class ReplicaRun:
    """A training of several replicas.

    Attributes:
        steps: how many it has.
        attempts: the quorums that were formed, in order.
        completed: what the replicas reported.
        deaths: (replica, the number of steps before it died), in order.
    """

    steps: int
    attempts: list[StepAttempt]
    completed: list[CompletedStep]
    deaths: list[tuple[int, int]] = field(default_factory=list)

    @property
    def lost_steps(self) -> int:
        """Attempts that were lost: started and never finished, or finished and repeated later."""
        return len(self.attempts) - self.steps

    @property
    def members(self) -> list[tuple[int, ...]]:
        """For each step, the replicas that took part when it was done for good."""
        last = {attempt.step: attempt.members for attempt in self.attempts}
        return [last[step] for step in range(self.steps)]

    @property
    def losses(self) -> list[float]:
        """The loss of each step, from 1 on, when it was done for good."""
        last = {done.step: done.loss for done in self.completed}
        return [last[step + 1] for step in range(self.steps)]

    @property
    def step_seconds(self) -> list[float]:
        """Seconds from each quorum to the next one before the first death."""
        times = [attempt.at for attempt in self.attempts if not self.deaths or attempt.step <= self.deaths[0][1]]
        return [after - before for before, after in zip(times[1:], times[2:], strict=False)]

    @property
    def stall(self) -> float:
        """Seconds from the quorum for the step of the first death to the first step completed after it.

        After a restart of all, this is a repeated step. Those that follow are no stall, but steps that were lost.
        """
        _, step = self.deaths[0]
        began = min(attempt.at for attempt in self.attempts if attempt.step == step)
        return min(done.at for done in self.completed if done.at > began) - began


@dataclass
class _Process:
    """A process, its replica's number, and the number of steps from which on it may take part."""

    replica: int
    process: subprocess.Popen
    joins_at: int
    output: Path


def run_replicas(
    program: Path,
    steps: int,
    replicas: int = 4,
    *,
    dies: Mapping[int, int] | None = None,
    joins: Mapping[int, int] | None = None,
    min_replicas: int = 1,
    restart_all: bool = False,
    save_every: int = 0,
    timeout: float = 120.0,
) -> ReplicaRun:
    """Train with several processes, each of which runs the program with a `Manager`, and return what happened.

    No process outlives this call. Their messages stay on this machine.

    Args:
        program: a Python file, whose folder is that of the checkpoints, too.
        steps: of the training.
        dies: replica → it kills itself in the step after so many steps; only the first process of this replica does.
        joins: replica → when it has died, start it again, and let it take part after so many steps. The others wait for
            it there, so that every run has the same steps.
        min_replicas: with fewer, no step is taken.
        restart_all: if one dies, end all and start them again, from the last checkpoint.
        save_every: steps between two checkpoints; 0 for none.
        timeout: seconds, for messages and for the lighthouse.

    Raises:
        CourseError: a process fails, or nothing happens for twice `timeout`, or a replica would join after the end.
    """
    if late := [replica for replica, step in (joins or {}).items() if step >= steps]:
        raise CourseError(f"Replica {late[0]} can't join after the last step. Let it join earlier, or take more steps.")
    store = tcp_store("127.0.0.1", 0, 1, timedelta(seconds=timeout), serve=True)
    given = {"steps": steps, "save_every": save_every, "port": store.port, "timeout": timeout}
    processes = _Processes(program, given)
    lighthouse = Lighthouse(store, min_replicas, timeout)
    run = ReplicaRun(steps, lighthouse.attempts, lighthouse.completed)
    try:
        for replica in range(replicas):
            processes.start(replica, dies_at=(dies or {}).get(replica, -1))
        while processes.running:
            lighthouse.listen(processes.replicas())
            for dead in processes.take_dead():
                if dead in lighthouse.finished:
                    continue
                gone = processes.ended[dead]
                check_killed(gone.process, gone.output)
                run.deaths.append((gone.replica, lighthouse.attempts[-1].step))
                if restart_all:
                    processes.end_all()
                    for replica in range(replicas):
                        processes.start(replica)
                elif gone.replica in (joins or {}):
                    processes.start(gone.replica, joins_at=(joins or {})[gone.replica])
            newest = lighthouse.newest_step()
            awaited = processes.replicas(newest)
            lighthouse.answer({n: replica for n, replica in awaited.items() if n not in lighthouse.finished})
            check_progress(max(lighthouse.heard_at, processes.started_at), 2 * timeout)
            time.sleep(PAUSE)
    finally:
        processes.end_all()
    return run


class _Processes:
    """The processes of the replicas: those that run, by number, and those that have ended."""

    def __init__(self, program: Path, given: Mapping[str, object]) -> None:
        self.program, self.given = program, given
        self.running: dict[int, _Process] = {}
        self.ended: dict[int, _Process] = {}
        self.started_at = 0.0

    def start(self, replica: int, dies_at: int = -1, joins_at: int = 0) -> None:
        """Start a process with a new number."""
        number = len(self.running) + len(self.ended)
        folder = self.program.parent
        given = {**self.given, "replica": replica, "process": number, "dies_at": dies_at, "folder": str(folder)}
        output = folder / f"output_{number}.txt"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [ranks_python(), str(self.program), json.dumps(given)],
                cwd=folder,
                env={**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
            )
        self.running[number] = _Process(replica, process, joins_at, output)
        self.started_at = time.monotonic()

    def replicas(self, step: int | None = None) -> dict[int, int]:
        """Number of each process that runs → its replica. With a step, only those that may take part by then."""
        return {n: each.replica for n, each in self.running.items() if step is None or each.joins_at <= step}

    def take_dead(self) -> list[int]:
        """Return the processes that have ended since the last call; they count as running no longer."""
        dead = [number for number, each in self.running.items() if each.process.poll() is not None]
        for number in dead:
            self.ended[number] = self.running.pop(number)
        return dead

    def end_all(self) -> None:
        """Kill all that run."""
        for each in self.running.values():
            each.process.kill()
        for each in [*self.running.values(), *self.ended.values()]:
            each.process.wait()
            if each.process.stdin:
                each.process.stdin.close()
        self.ended |= self.running
        self.running = {}


def check_killed(process: subprocess.Popen, output: Path) -> None:
    """Reject a process that has ended by itself and not by the signal SIGKILL.

    Raises:
        CourseError: with the last lines of its output.
    """
    if process.returncode != -signal.SIGKILL:
        last = output.read_text(errors="replace").strip().splitlines()[-3:]
        raise CourseError(f"A replica failed with exit code {process.returncode}. Its last lines:\n" + "\n".join(last))


def check_progress(last_event: float, limit: float) -> None:
    """Reject a run in which nothing has happened for too long.

    Raises:
        CourseError: the last event is more than `limit` seconds ago.
    """
    if time.monotonic() - last_event > limit:
        raise CourseError(f"Nothing has happened for {limit:.0f} s. Are fewer replicas alive than min_replicas?")
