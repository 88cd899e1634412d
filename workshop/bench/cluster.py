"""How long a learner waits: for the first result of four ranks, for taking them over, for their end.

Beside each stands raw mpiexec, which starts as many processes for one all-reduce, measured in the same round.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course_utils.errors import CourseError
from workshop.bench.rows import Row, ratio_row, seconds_row

RANKS = 4
RAW_SECONDS = 0.64  # raw mpiexec on the machine the targets were set for
TARGETS = {"first result": 3.0 / RAW_SECONDS, "taking over": 0.7 / RAW_SECONDS, "stop": 0.7 / RAW_SECONDS}
_LIMIT_SECONDS = 120.0
_RAW = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"


def run(runs: int) -> list[Row]:
    """Measure by turns: raw mpiexec, then start, take over and stop."""
    taken: dict[str, list[float]] = {name: [] for name in ("raw mpiexec", *TARGETS)}
    for _ in range(runs):
        taken["raw mpiexec"].append(raw_mpiexec())
        for name, seconds in learners_session().items():
            taken[name].append(seconds)
    rows = [seconds_row("cluster", name, seconds) for name, seconds in taken.items()]
    for name, target in TARGETS.items():
        rows.append(ratio_row("cluster", f"{name} / raw mpiexec", taken[name], taken["raw mpiexec"], target=target))
    return rows


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


def learners_session() -> dict[str, float]:
    """Seconds of a first notebook's start, of a second one's taking over, and of the end; in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        first = _notebook(folder)
        try:
            seconds = {"first result": _answer(first)}
            second = _notebook(folder)
            try:
                seconds["taking over"] = _answer(second)
            finally:
                _end(second)
            _say(first, "stop")
            seconds["stop"] = _answer(first)
        finally:
            _end(first)
    return seconds


def _notebook(runtime: str) -> subprocess.Popen:
    """A process that does what a notebook's first cells do, and then what it is told."""
    with open(Path(runtime) / "errors", "a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "workshop.bench.cluster"],
            env={**os.environ, "COURSE_RUNTIME": runtime},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def _say(process: subprocess.Popen, word: str) -> None:
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen) -> float:
    """The seconds that the process prints; its other lines are for learners."""
    for line in process.stdout:
        if line.startswith("seconds "):
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


def be_a_notebook() -> None:
    """Start ranks or take them over, print the seconds to the first result; "stop" on the input ends the ranks."""
    begin = time.perf_counter()
    import course_utils as course

    ranks = course.start(RANKS)
    if ranks.run(one_allreduce).results != [RANKS] * RANKS:
        raise CourseError("The ranks cannot add.")
    print(f"seconds {time.perf_counter() - begin}", flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        ranks.stop()
        print(f"seconds {time.perf_counter() - begin}", flush=True)


if __name__ == "__main__":
    be_a_notebook()
