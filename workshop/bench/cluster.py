"""How long a learner waits: for the first result of four ranks, with torch and without, for new ones, for their end.

Beside each stands raw mpiexec, which starts as many processes for one all-reduce, measured in the same round. "Cold"
is a first notebook, which brings up the fork server; "warm" is one that finds it with torch imported.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.ranks.processes import forking
from workshop.bench.rows import Row, ratio_row, seconds_row

RANKS = 4
TARGETS = {
    "first result, cold": 6.0,
    "first result, warm": 3.0,
    "first step of an optimizer, warm": 4.0,
    "restart, warm": 3.0,
    "taking over": 2.5,
    "stop": 2.5,
}
"""Times raw mpiexec."""
MEMORY = 1.5
"""Of four ranks that have taken a step of an optimizer, times that of one process started anew."""
_LIMIT_SECONDS = 120.0
_RAW = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"


def run(runs: int) -> list[Row]:
    """Measure by turns: raw mpiexec, then two notebooks' sessions."""
    taken: dict[str, list[float]] = {name: [] for name in ("raw mpiexec", *TARGETS)}
    memory: dict[str, list[float]] = {"four": [], "one": []}
    for _ in range(runs):
        taken["raw mpiexec"].append(raw_mpiexec())
        for name, number in session().items():
            (memory if name in memory else taken)[name].append(number)
    rows = [seconds_row("cluster", name, seconds) for name, seconds in taken.items()]
    for name, target in TARGETS.items():
        rows.append(ratio_row("cluster", f"{name} / raw mpiexec", taken[name], taken["raw mpiexec"], target=target))
    name = f"memory (PSS) of {RANKS} ranks after a step of an optimizer / of one process"
    return [*rows, ratio_row("cluster", name, memory["four"], memory["one"], target=MEMORY)]


def raw_mpiexec() -> float:
    """Seconds for mpiexec to start the ranks, add up 1 from each, and end."""
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if not mpiexec:
        raise CourseError("There is no mpiexec here: `make setup` brings one.")
    begin = time.perf_counter()
    done = subprocess.run(
        [mpiexec, "-n", str(RANKS), sys.executable, "-c", _RAW],
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode or done.stdout.count(str(RANKS)) != RANKS:  # the lines of ranks may run into each other
        raise CourseError(f"mpiexec -n {RANKS} did not give {RANKS} ranks: {(done.stdout + done.stderr)[-200:]}")
    return seconds


def session() -> dict[str, float]:
    """Seconds of what two notebooks ask for, and bytes of memory; in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        first = _notebook(folder)
        try:
            found = {"first result, cold": _answer(first, "start")}
            _answer(first, "wait for torch")
            second = _notebook(folder)
            try:
                found["taking over"] = _answer(second, "start")
            finally:
                _end(second)
            found["stop"] = _answer(first, "stop")
            third = _notebook(folder)
            try:
                found["first result, warm"] = _answer(third, "start")
                found["restart, warm"] = _answer(third, "restart")
                _answer(third, "stop")
            finally:
                _end(third)
            found["first step of an optimizer, warm"] = _answer(first, "step")
            found["four"] = _answer(first, "memory")
        finally:
            _end(first)
    return {**found, "one": memory_of_one()}


def _notebook(runtime: str) -> subprocess.Popen:
    """A process that does what a notebook's cells do, when it is told."""
    with open(Path(runtime) / "errors", "a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "workshop.bench.cluster"],
            env={**os.environ, settings.RUNTIME.name: runtime},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def _answer(process: subprocess.Popen, word: str) -> float:
    """The number that the process prints when it has done what it is told; its other lines are for learners."""
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("number "):
            return float(line.split()[1])
    raise CourseError("The bench's ranks ended before they answered; `course doctor` may say why.")


def _end(process: subprocess.Popen) -> None:
    """Let the process end by itself; where it does not, end it."""
    try:
        process.communicate(timeout=_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def one_allreduce(comm) -> int:
    """Add up 1 from every rank."""
    return comm.allreduce(1)


def first_step(comm=None) -> int:
    """Import torch, and take one step of an optimizer."""
    import torch

    layer = torch.nn.Linear(100, 100)
    layer(torch.ones(4, 100)).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    return comm.allreduce(1) if comm else 1


def memory_of_one() -> float:
    """Bytes of a process that has taken the step as if there were no server."""
    code = (
        "from mpi4py import MPI; import psutil, course_utils.ranks.engine.calls as c; "
        "from workshop.bench.cluster import first_step; "
        "first_step(); print(psutil.Process().memory_full_info().pss)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


class Notebook:
    """Does what a notebook's cells do."""

    def start(self, function: Callable = one_allreduce) -> float:
        """Seconds until a function's first result."""
        begin = time.perf_counter()
        import course_utils as course

        self.ranks = course.start(RANKS)
        return self._result(function, begin)

    def restart(self) -> float:
        """Seconds until the first result of new ranks."""
        begin = time.perf_counter()
        self.ranks.restart()
        return self._result(one_allreduce, begin)

    def step(self) -> float:
        """Seconds until new ranks have taken a step of an optimizer."""
        return self.start(first_step)

    def stop(self) -> float:
        """Seconds until the ranks have ended."""
        begin = time.perf_counter()
        self.ranks.stop()
        return time.perf_counter() - begin

    def wait_for_torch(self) -> float:
        """Let the fork server import torch, and wait until it has."""
        begin = time.perf_counter()
        server = forking.fork_server(torch=True)
        while server and not (server.path / "torch").exists() and time.perf_counter() < begin + _LIMIT_SECONDS:
            time.sleep(0.05)
        return time.perf_counter() - begin

    def memory(self) -> float:
        """Bytes of all ranks together, where what several share counts once."""
        return float(sum(psutil.Process(pid).memory_full_info().pss for pid in self.ranks.pids))

    def _result(self, function: Callable, begin: float) -> float:
        if self.ranks.run(function).results != [RANKS] * RANKS:
            raise CourseError("The ranks cannot add.")
        return time.perf_counter() - begin


if __name__ == "__main__":
    notebook = Notebook()
    for command in sys.stdin:
        print(f"number {getattr(notebook, command.strip().replace(' ', '_'))()}", flush=True)
