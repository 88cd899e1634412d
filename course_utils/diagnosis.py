"""What this machine has and whether the course can run on it. Most of it is tried out: `course.doctor()`."""

import contextlib
import difflib
import fcntl
import importlib.metadata
import importlib.util
import ipaddress
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import settings, smoke_tests, system
from course_utils.errors import CourseError
from course_utils.home import course_home
from course_utils.machine import GIB, allowed_cores, gpus, memory_bytes, ranks_python
from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import find_mpiexec, mpi_library
from course_utils.ranks.processes.ranks_folder import runtime_root
from course_utils.teacher import sandbox
from course_utils.words import bytes_text, seconds_text

ENOUGH_MEMORY = 3 * GIB
NEEDED = ("cloudpickle", "ipykernel", "ipyparallel", "jupyterlab", "matplotlib", "numpy", "psutil", "torch")
_OF_OTHERS = ("nfs", "cifs", "smb", "lustre", "beegfs", "gpfs", "fuse.sshfs", "ceph", "9p")
"""Kinds of file systems that are on another machine."""
_SHOWN = 100
"""Letters of a setting's value."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CAN_RUN = "The course can run here."
CANNOT_RUN = "The course cannot run here yet. Each line with ✗ says what is missing and how to get it."


def chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@dataclass(frozen=True, slots=True)
class Probed:
    """One line of the doctor: what was examined, what was found, and what to do if it is missing."""

    what: str
    found: str
    well: bool
    needed: bool = True
    remedy: str = ""

    def __str__(self) -> str:
        mark = "✓" if self.well else "✗" if self.needed else "○"
        return f"{mark} {self.what:<11} {self.found}{'' if self.well or not self.remedy else f'. {self.remedy}'}"


def examine(quick: bool = False) -> Iterator[Probed]:
    """Examine everything that the course needs or can use. Yield one finding at a time, because some take seconds.

    Args:
        quick: start no ranks, and do not ask torch for GPUs.
    """
    first = [_python(), _packages(), _mpi(), *_watching()]
    yield from first
    tried = not quick and all(finding.well for finding in first)
    if tried:
        yield from _ranks()
    yield from _settings()
    yield _folders()
    yield _names()
    yield _cores()
    yield _memory()
    yield _gpus() if quick else _computing_gpus()
    yield _slurm()
    yield _links(tried)
    yield from _wsl()
    yield _browser()
    yield _grading()


def doctor(quick: bool = False) -> None:
    """Print a line for everything that the course needs or can use here. Most is tried out, which takes seconds.

    Args:
        quick: start no ranks, and do not ask torch for GPUs.
    """
    print_findings(examine(quick))


def print_findings(findings: Iterable[Probed]) -> bool:
    """Print each finding as soon as it is there, then the verdict. Return whether the course can run here."""
    ready = True
    for finding in findings:
        print(finding, flush=True)
        ready &= finding.well or not finding.needed
    print(CAN_RUN if ready else CANNOT_RUN)
    return ready


def _python() -> Probed:
    well = sys.version_info >= (3, 11)
    return Probed("Python", f"{platform.python_version()} at {sys.executable}", well, remedy="Install 3.11 or newer")


def _packages() -> Probed:
    hosted = ranks_python() != sys.executable
    needed = [name for name in NEEDED if not (hosted and name == "jupyterlab")]  # the host has a server of its own
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        return Probed("packages", f"missing: {', '.join(missing)}", False, remedy="`make setup` installs them")
    last = "the ranks' in an environment of their own" if hosted else "JupyterLab"
    return Probed("packages", f"torch {importlib.metadata.version('torch')}, ipyparallel, {last}", True)


def _mpi() -> Probed:
    if importlib.util.find_spec("mpi4py") is None:
        return Probed("MPI", "mpi4py is missing", False, remedy="`make setup` installs it")
    try:
        return Probed("MPI", f"{mpi_library()}, started by {find_mpiexec()}", True)
    except CourseError as error:
        remedy = "`make setup` brings one" if "mpi4py" in str(error) else ""  # the other text has its own
        return Probed("MPI", str(error).rstrip("."), False, remedy=remedy)


def _watching() -> Iterator[Probed]:
    """Yield a line if the system hides its processes, because then ranks cannot be watched."""
    if system.started_at(os.getpid()) is None:
        remedy = f"`{system.SHOW_PROCESSES}` shows them. Containers show them unless set up otherwise"
        yield Probed(
            "processes",
            "are hidden, so nothing tells whether ranks are still running",
            False,
            remedy=remedy,
        )


def _ranks() -> Iterator[Probed]:
    """Two ranks that start, send each other a message, and add up by torch."""
    what, remedy = "ranks", "`course sweep` ends ranks that an earlier start left behind. Then try again"
    began = time.monotonic()
    try:
        with smoke_tests.two_ranks() as ranks:
            started = time.monotonic() - began
            seconds = ranks.run(smoke_tests.there_and_back, smoke_tests.MESSAGE_BYTES, smoke_tests.MESSAGES).results[0]
            size = bytes_text(smoke_tests.MESSAGE_BYTES)
            yield Probed("ranks", f"two, started in {started:.1f} s; {size} sent in {seconds_text(seconds)}", True)
            what, remedy = "gloo", "It uses this machine's loopback interface. Does a firewall block that?"
            added = ranks.run(smoke_tests.add_over_gloo, backend="gloo").results
            well = added == [3.0, 3.0]
            yield Probed("gloo", "torch computed a sum over it" if well else f"1 + 2 gave {added}", well, remedy=remedy)
    except CourseError as error:
        yield Probed(what, _in_a_line(error), False, remedy=remedy)


def _in_a_line(error: CourseError) -> str:
    """The text without its line breaks and its last full stop."""
    return " ".join(str(error).split()).rstrip(".")


def _settings() -> Iterator[Probed]:
    """Yield the settings that are set here, and a line for each value and each name that is not allowed."""
    known = {setting.name: setting for setting in settings.SETTINGS}
    given = {name: text for name, text in sorted(os.environ.items()) if name.startswith(settings.PREFIX) and text}
    shown = [f"{name}={_shown(known[name], text)}" for name, text in given.items() if name in known]
    yield Probed("settings", ", ".join(shown) or "none is set, and none is needed", True)
    for name in given:
        if name not in known:
            yield Probed(
                "settings", f"{name} is set, but the course has no such setting", False, False, _meant(name, known)
            )
            continue
        try:
            known[name].value()
        except CourseError as error:
            yield Probed("settings", _in_a_line(error), False, False)


def _meant(name: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the setting with the most similar name, or where all are listed."""
    endings = [setting.removeprefix(settings.PREFIX) for setting in known]
    for ending in difflib.get_close_matches(name.removeprefix(settings.PREFIX), endings, n=1):
        return f"Did you mean {settings.PREFIX}{ending}?"
    return "docs/settings.md lists them"


def _shown(setting: settings.Setting, text: str) -> str:
    """A value as the doctor prints it: no password, and of a long one only the beginning."""
    if setting.format is settings.SECRET:
        return "(not shown)"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _folders() -> Probed:
    """Whether the files of ranks and learners can be written and locked, and on which file systems they are."""
    places = {"ranks' files": (settings.RUNTIME.name, runtime_root), "notes": (settings.HOME.name, course_home)}
    found = []
    for what, (variable, folder_of) in places.items():
        try:
            folder = folder_of()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"course")
                file.flush()
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, RuntimeError, CourseError) as error:
            reason = getattr(error, "strerror", None) or _in_a_line(error)
            remedy = f"Set {variable} to a folder on this machine's own disk that you may write to"
            return Probed("folders", f"{what} cannot be stored: {reason}", False, what == "ranks' files", remedy)
        found.append(f"{what} in {folder}{_file_system(folder)}")
    return Probed("folders", "; ".join(found), True)


def _file_system(folder: Path) -> str:
    """ " (nfs4)" if a folder is on a file system of another machine; "" if not, or if that cannot be found out."""
    import psutil

    with contextlib.suppress(OSError, psutil.Error):
        kinds = {Path(partition.mountpoint): partition.fstype for partition in psutil.disk_partitions(all=True)}
        kind = next((kinds[parent] for parent in (folder.resolve(), *folder.resolve().parents) if parent in kinds), "")
        return f" ({kind})" if kind.startswith(_OF_OTHERS) else ""
    return ""


def _names() -> Probed:
    """Whether this machine knows itself by the name that torchrun uses."""
    remedy = "Add the line `127.0.0.1 localhost` to /etc/hosts"
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo("localhost", None)}
    except OSError:
        unknown = "`localhost` is unknown, and torchrun's processes find each other by that name"
        return Probed("names", unknown, False, False, remedy)
    own = sorted(address for address in addresses if ipaddress.ip_address(address.partition("%")[0]).is_loopback)
    if not own:
        return Probed(
            "names",
            f"`localhost` is {', '.join(sorted(addresses))}, which is a different machine",
            False,
            False,
            remedy,
        )
    return Probed("names", f"localhost is {', '.join(own)}", True)


def _cores() -> Probed:
    allowed, machine = allowed_cores(), os.cpu_count() or 1
    found = f"{allowed} of the machine's {machine}"
    return Probed(
        "cores",
        found,
        allowed >= 2,
        needed=False,
        remedy="Everything runs, but ranks share the core, so measured times show little",
    )


def _memory() -> Probed:
    allowed = memory_bytes()
    return Probed(
        "memory",
        f"{allowed / GIB:.1f} GiB allowed",
        allowed >= ENOUGH_MEMORY,
        needed=False,
        remedy="Four ranks with torch need about 2 GiB, and several times more if they use GPUs. Close other programs",
    )


def _driver_gpus() -> tuple[str, ...]:
    """The GPUs that the driver shows in its files. WSL has no such files, so there its command is asked."""
    found = gpus()
    if not found and os.environ.get("CUDA_VISIBLE_DEVICES") is None and (smi := shutil.which("nvidia-smi")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            listed = subprocess.run([smi, "-L"], capture_output=True, text=True, timeout=10, check=False).stdout
            found = re.findall(r"^GPU \d+: (.+?) \(UUID", listed, re.MULTILINE)
    return tuple(found)


def _gpus() -> Probed:
    return Probed("GPUs", ", ".join(_driver_gpus()) or "none, and none is needed", True)


def _computing_gpus() -> Probed:
    """The same GPUs, and whether torch can compute on all of them."""
    shown, torch = _driver_gpus(), smoke_tests.ask_torch()
    if not torch.error and len(torch.names) >= len(shown):
        found = f"torch computes on {', '.join(torch.names)}" if torch.names else "none, and none is needed"
        return Probed("GPUs", found, True)
    if torch.silent:
        found = f"{', '.join(shown) or 'none, and none is needed'}; torch did not answer: {torch.error}"
        return Probed("GPUs", found, False, False, "Is the machine busy? Then try again")
    if not shown:
        return Probed("GPUs", f"none, and torch fails: {torch.error}", False, remedy="`make setup` installs it again")
    found = f"fails: {torch.error}" if torch.error else f"{torch.version} computes on {len(torch.names)} of them"
    if torch.version and not torch.cuda:
        remedy = "This build of torch cannot use GPUs. `TORCH=auto make setup` installs one that can"
    else:
        remedy = "Is the driver older than torch's CUDA? Then `TORCH=auto make setup` installs one that fits it"
    return Probed("GPUs", f"{', '.join(shown)}; torch {found}", False, False, remedy)


def _slurm() -> Probed:
    if not (sbatch := shutil.which("sbatch")):
        return Probed("Slurm", "none, and none is needed", True)
    job = os.environ.get("SLURM_JOB_ID")
    return Probed("Slurm", f"{sbatch}{f', inside job {job}' if job else ''}", True)


def _links(tried: bool) -> Probed:
    """Whether ranks can be put behind emulated network links and, if that is tried, how much a link carries."""
    remedy = "Lessons that emulate slow links run without them here, and say so"
    if reason := "processes are hidden" if any(_watching()) else network.obstacle():
        return Probed("links", f"no: {reason.rstrip('.')}", False, False, remedy)
    if not tried:
        return Probed("links", "allowed", True)
    try:
        found, well = smoke_tests.link_text()
    except CourseError as error:
        return Probed("links", f"allowed, but {_in_a_line(error)}", False, False, remedy)
    return Probed(
        "links",
        found,
        well,
        False,
        "Other programs use the processor. Close them if links matter",
    )


def _wsl() -> Iterator[Probed]:
    """Under Windows, whether the kernel of WSL can emulate links."""
    release = platform.release()
    if "microsoft" not in release.lower():
        return
    if "Microsoft" in release:  # the name that WSL 1 has, which is not a Linux kernel
        remedy = "In Windows, `wsl --set-version NAME 2` gives it a Linux kernel, and `wsl --list` prints its name"
        yield Probed("WSL", f"version 1, kernel {release}, which cannot emulate links", False, False, remedy)
    elif network.obstacle():
        remedy = "In Windows, `wsl --update` and then `wsl --shutdown` install a kernel that can. See the line `links`"
        yield Probed("WSL2", f"kernel {release} cannot emulate links", False, False, remedy)
    else:
        yield Probed("WSL2", f"kernel {release} can emulate links", True)


def _browser() -> Probed:
    found = chromium()
    remedy = "`make lab` works with any browser. Only slides as PDF and browser tests need `apt install chromium`"
    return Probed("browser", found or "no Chromium", bool(found), needed=False, remedy=remedy)


def _grading() -> Probed:
    """Whether `course grade` can run here, and how strictly."""
    is_hidden = any(_watching())
    hidden = "The system hides its processes, and the grader has to see them"
    reason = hidden if is_hidden else sandbox.obstacle()
    if reason is None:
        return Probed("grading", "`course grade` can run here, with each notebook in a sandbox", True)
    if not system.LINUX:
        return Probed(
            "grading", "`course grade` runs on Linux alone, in a container of Linux for example", False, False
        )
    found = "`course grade` runs only with --trusted, which means without a sandbox"
    if os.geteuid() == 0 and (is_hidden or sandbox.is_root()):
        found = "`course grade` cannot run here: there is no sandbox, and root may not grade without it"
    return Probed("grading", f"{found}. {reason.rstrip('.')}", False, False, "Only teachers who grade need this")
