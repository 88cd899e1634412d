"""What this machine has, and whether the course can run on it: `course.doctor()`."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.machine import GIB, allowed_cores, gpus, memory_bytes
from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import find_mpiexec, mpi_library

ENOUGH_MEMORY = 3 * GIB
NEEDED = ("cloudpickle", "ipykernel", "ipyparallel", "jupyterlab", "matplotlib", "numpy", "psutil", "torch")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's: what was looked at, what was found, and what to do where it is missing."""

    what: str
    found: str
    well: bool
    needed: bool = True
    remedy: str = ""

    def __str__(self) -> str:
        mark = "✓" if self.well else "✗" if self.needed else "○"
        return f"{mark} {self.what:<11} {self.found}{'' if self.well or not self.remedy else f'. {self.remedy}'}"


def examine() -> list[Finding]:
    """Look at everything that the course needs, or uses where it is there."""
    return [_python(), _packages(), _mpi(), _cores(), _memory(), _gpus(), _slurm(), _namespaces(), _browser()]


def ready(findings: list[Finding]) -> bool:
    """Whether the course can run with what was found."""
    return all(finding.well for finding in findings if finding.needed)


def doctor() -> None:
    """Print what this machine can run and what is missing, a line each."""
    tell(examine())


def tell(findings: list[Finding]) -> None:
    """Print the findings, and the verdict in a line of its own."""
    print("\n".join(map(str, findings)))
    print("The course can run here." if ready(findings) else "The course cannot run here yet: see the lines with ✗.")


def _python() -> Finding:
    well = sys.version_info >= (3, 11)
    return Finding("Python", f"{platform.python_version()} at {sys.executable}", well, remedy="Install 3.11 or newer")


def _packages() -> Finding:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return Finding("packages", f"missing: {', '.join(missing)}", False, remedy="`make setup` installs them")
    return Finding("packages", f"torch {importlib.metadata.version('torch')}, ipyparallel, JupyterLab", True)


def _mpi() -> Finding:
    if importlib.util.find_spec("mpi4py") is None:
        return Finding("MPI", "mpi4py is missing", False, remedy="`make setup` installs it")
    try:
        return Finding("MPI", f"{mpi_library()}, started by {find_mpiexec()}", True)
    except CourseError as error:
        return Finding("MPI", str(error).rstrip("."), False, remedy="`make setup` installs MPICH")


def _cores() -> Finding:
    allowed, machine = allowed_cores(), os.cpu_count() or 1
    found = f"{allowed} of the machine's {machine}"
    return Finding("cores", found, allowed >= 2, needed=False, remedy="Everything runs, but ranks take turns")


def _memory() -> Finding:
    allowed = memory_bytes()
    return Finding(
        "memory",
        f"{allowed / GIB:.1f} GiB allowed",
        allowed >= ENOUGH_MEMORY,
        needed=False,
        remedy="Four ranks with torch take about 2 GiB: close other programs",
    )


def _gpus() -> Finding:
    names = gpus()
    return Finding("GPUs", ", ".join(names) or "none, and none is needed", True)


def _slurm() -> Finding:
    if not (sbatch := shutil.which("sbatch")):
        return Finding("Slurm", "none, and none is needed", True)
    job = os.environ.get("SLURM_JOB_ID")
    return Finding("Slurm", f"{sbatch}{f', inside job {job}' if job else ''}", True)


def _namespaces() -> Finding:
    """Whether ranks can be nodes behind links of their own."""
    reason = network.obstacle()
    remedy = "The lessons that slow links down use loopback here and say so"
    return Finding("namespaces", f"no: {reason.rstrip('.')}" if reason else "allowed", not reason, False, remedy)


def _browser() -> Finding:
    found = chromium()
    remedy = "`make lab` prints an address for any browser; for slides as PDF and browser tests: apt install chromium"
    return Finding("browser", found or "no Chromium", bool(found), needed=False, remedy=remedy)
