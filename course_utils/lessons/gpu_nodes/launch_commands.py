"""A batch script submitted from a notebook, and what can be read in the log of a training run."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.readable_log import readable, readable_lines
from course_utils.lessons.overlap.torchrun import with_torchvision
from course_utils.machine import ranks_python
from course_utils.ranks.processes.ranks_folder import shared_root
from course_utils.ranks.slurm.job_environment import environment_for_new_job
from course_utils.ranks.slurm.job_sentences import end_text, waiting_text
from course_utils.ranks.slurm.job_status import EndCause, JobEnd, end_of, status_of
from course_utils.ranks.slurm.slurm_commands import ask_slurm

NO_SLURM = "No Slurm here (no sbatch that answers): the script is there to be read, and the page goes on without it."
ACCOUNT = (
    "The page goes on without it. Does your centre want an account or a partition? They can be said before JupyterLab "
    "starts: `export SBATCH_ACCOUNT=… SBATCH_PARTITION=…`."
)


def with_own_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which `python` and `torchrun` are those of the ranks."""
    own = str(Path(ranks_python()).parent)
    return {**environment, "PATH": os.pathsep.join([own, environment.get("PATH", "")])}


def progress_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a log that people read, as they arrive: no remarks of torchrun's, no result for programs.

    `run_torchrun(…, shown=progress_lines)` prints these.
    """
    return (line for line in readable_lines(lines) if not line.startswith("done: "))


def losses_of(log: str) -> list[float]:
    """The loss at the end of each epoch, from the last line of a training that ended well.

    Raises:
        CourseError: there is no such line.
    """
    found = re.findall(r"^done: (.*)$", log, flags=re.MULTILINE)
    if not found:
        raise CourseError(f"The training did not come to its end. What it said:\n{readable(log)[-2000:]}")
    return json.loads(found[-1])["losses"]


def printed_losses(log: str) -> list[float]:
    """Return the losses that lesson 7's `train.py` printed, one for each epoch.

    Raises:
        CourseError: it printed none.
    """
    found = re.findall(r"^epoch \d+: loss ([\d.]+),", log, flags=re.MULTILINE)
    if not found:
        raise CourseError(f"The program printed no loss. What it said:\n{readable(log)[-2000:]}")
    return [float(loss) for loss in found]


def has_slurm() -> bool:
    """Whether there is a Slurm here that answers."""
    if not (shutil.which("sbatch") and shutil.which("sinfo")):
        return False
    return ask_slurm("sinfo", "--noheader").accepted


def training_folder() -> Path:
    """A place for checkpoints that all nodes see: the shared one where there is a Slurm, else that of scratch files."""
    if not has_slurm():
        return Path(tempfile.gettempdir())
    shared_root().mkdir(mode=0o700, parents=True, exist_ok=True)
    return shared_root()


def hand_in(script: str, folder: Path, seconds: float = 120.0) -> str:
    """Give a batch script to Slurm, wait until its job is over, print and return what it said.

    Without a Slurm, where it rejects the script, or where the job waits in the queue for too long (it is then
    cancelled), a line says so, and the log is "".
    """
    if not has_slurm():
        print(NO_SLURM)
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.sh").write_text(with_torchvision(script, folder))
    asked = subprocess.run(
        ["sbatch", "--parsable", "--export=ALL", f"--chdir={folder}", "--output=job.log", "job.sh"],
        env=with_own_python(environment_for_new_job(os.environ)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if asked.returncode:
        print(f"Slurm rejected the script: {asked.stderr.strip() or asked.stdout.strip()}\n{ACCOUNT}")
        return ""
    number = asked.stdout.strip().split(";")[0]
    end = _end_of_job(number, seconds)
    if end is None:
        waits = waiting_text(number, status_of(number))
        print(f"{waits}, after {seconds:.0f} s. It is cancelled, and the page goes on without it.")
        return ""
    if not (folder / "job.log").exists():
        print(f"{end_text(end)} It wrote nothing, and the page goes on without it.")
        return ""
    log = (folder / "job.log").read_text(errors="replace")
    print(*progress_lines(log.splitlines()), sep="\n")
    return log


def _end_of_job(number: str, seconds: float) -> JobEnd | None:
    """Why a job is over; None for one that is not in time: it is cancelled, also where the notebook is interrupted."""
    deadline, end, pause = time.monotonic() + seconds, None, 0.5
    try:
        while not (end := _unless_suspended(end_of(number))) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(1.3 * pause, 5.0)  # Slurm's controller serves the whole site
        return end
    finally:
        if not end:
            ask_slurm("scancel", number)


def _unless_suspended(end: JobEnd | None) -> JobEnd | None:
    """The end of a job; None for one that stands still, which may go on."""
    return end if end and end.cause is not EndCause.SUSPENDED else None
