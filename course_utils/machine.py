"""What this machine has, and whether the course can run on it: `course.doctor()`."""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from course_utils.cluster import network
from course_utils.cluster.cgroups import PROC, ROOT, control_groups
from course_utils.errors import CourseError

GIB = 1 << 30
ENOUGH_MEMORY = 3 * GIB
NEEDED = ("cloudpickle", "ipykernel", "ipyparallel", "jupyterlab", "matplotlib", "numpy", "psutil", "torch")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def memory_bytes(root: Path = ROOT, proc: Path = PROC) -> int:
    """The memory this process may use: the machine's, or the least that its control groups allow."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    files = {1: "memory.limit_in_bytes", 2: "memory.max"}
    limits = [_number(folder / files[version]) for version, folder in control_groups("memory", proc, root)]
    return min([machine, *(limit for limit in limits if limit)])


def _number(file: Path) -> int:
    """The number a file holds; 0 where there is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def gpus(proc: Path = Path("/proc/driver/nvidia/gpus"), dev: Path = Path("/dev")) -> list[str]:
    """The names of the NVIDIA GPUs that this process may use, read from the driver's files: nothing is started."""
    minors = sorted(int(file.name[6:]) for file in dev.glob("nvidia[0-9]*") if file.name[6:].isdigit())
    names = {}
    for file in proc.glob("*/information"):
        text = file.read_text(errors="replace")
        model, minor = re.search(r"Model:\s*(.+)", text), re.search(r"Device Minor:\s*(\d+)", text)
        if model and minor:
            names[int(minor[1])] = model[1].strip()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [names.get(minor, "NVIDIA GPU") for minor in minors]
    chosen = []
    for one in visible.split(","):
        if not one.strip() or one.strip() == "-1":  # CUDA too reads only as far as the first that is none
            break
        chosen.append(names.get(int(one), "NVIDIA GPU") if one.strip().isdecimal() else "NVIDIA GPU")
    return chosen[: len(minors)]


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
    from course_utils.cluster.local import find_mpiexec, mpi_library

    if importlib.util.find_spec("mpi4py") is None:
        return Finding("MPI", "mpi4py is missing", False, remedy="`make setup` installs it")
    try:
        return Finding("MPI", f"{mpi_library()}, started by {find_mpiexec()}", True)
    except CourseError as error:
        return Finding("MPI", str(error).rstrip("."), False, remedy="`make setup` installs MPICH")


def _cores() -> Finding:
    from course_utils.cluster.cores import allowed_cores

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
