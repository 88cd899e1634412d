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
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from course_utils import settings, smoke_tests, system
from course_utils.errors import CourseError
from course_utils.home import course_home
from course_utils.lab import may_write
from course_utils.machine import GIB, allowed_cores, gpus, memory_bytes, ranks_python
from course_utils.own_files import trial_file
from course_utils.probes import Health, Probed, can_run, not_tried
from course_utils.ranks.links import network
from course_utils.ranks.links.network import rate_text
from course_utils.ranks.processes.failed_start import are_different, different_mpis_text
from course_utils.ranks.processes.launch_ranks import find_mpiexec, launchers_mpi, mpi_library
from course_utils.ranks.processes.ranks_folder import RanksFolder, runtime_root
from course_utils.ranks.slurm.addresses import address
from course_utils.ranks.slurm.cluster_state import ClusterHealth, cluster_state
from course_utils.ranks.slurm.job_sentences import cluster_text
from course_utils.required_packages import unfit_packages
from course_utils.shadowed_packages import VARIABLE, import_error, shadowed_packages
from course_utils.syllabus import ROOT
from course_utils.teacher import sandbox
from course_utils.words import bytes_text, join_first, seconds_text

ENOUGH_MEMORY = 3 * GIB
NEEDED = ("cloudpickle", "ipykernel", "ipyparallel", "jupyterlab", "matplotlib", "numpy", "psutil", "torch")
_OF_OTHERS = ("nfs", "cifs", "smb", "lustre", "beegfs", "gpfs", "fuse.sshfs", "ceph", "9p")
"""Kinds of file systems that are on another machine."""
_SHOWN = 100
"""Letters of a setting's value."""
_SHOWN_PACKAGES = 4
_OF_JUPYTER = "JUPYTER_RUNTIME_DIR"
_SLURM_SECONDS, _QUICK_SECONDS = 25.0, 12.0
"""How long each question to Slurm may take; where its controller is silent, its commands say so after up to 20 s."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CAN_RUN = "The course can run here."
CANNOT_RUN = "The course cannot run here yet. Each line with ✗ says what is missing and how to get it."


def chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def examine(quick: bool = False) -> Iterator[Probed]:
    """Examine everything that the course needs or can use. Yield one finding at a time, because some take seconds.

    Args:
        quick: start no ranks, and do not ask torch for GPUs.
    """
    first = [_python(), _packages(), *_shadowed(), _mpi(), *_watching()]
    yield from first
    fit = can_run(first)
    tried = not quick and fit
    yield from _ranks() if tried else not_tried("ranks", "gloo")
    yield from _settings()
    yield _folders()
    yield _names()
    yield _cores()
    yield _memory()
    yield _computing_gpus() if tried else _gpus()
    yield _slurm(_QUICK_SECONDS if quick else _SLURM_SECONDS)
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
    shown = []
    for finding in findings:
        if finding.health is not Health.NOT_TRIED:
            print(finding, flush=True)
            shown.append(finding)
    ready = can_run(shown)
    print(CAN_RUN if ready else CANNOT_RUN)
    return ready


def _set_up(does: str) -> tuple[str, str]:
    """What sets the environment up again, in words and for a shell; in a centre's release its users cannot.

    Args:
        does: what it does, such as "installs them".
    """
    if may_write():
        return f"`make setup` {does}", "make setup"
    return f"Ask whoever installed {ROOT}: `make setup` there {does}", ""


def _python() -> Probed:
    well = sys.version_info >= (3, 11)
    version, missing = platform.python_version(), () if well else ("Python 3.11",)
    values = {"version": version, "path": sys.executable}
    found = f"{version} at {sys.executable}"
    return Probed("Python", found, well, remedy="Install 3.11 or newer", values=values, missing=missing)


def _packages() -> Probed:
    hosted = ranks_python() != sys.executable
    needed = [name for name in NEEDED if not (hosted and name == "jupyterlab")]  # the host has a server of its own
    unfit = unfit_packages(ranks_python())
    old = [package for package in unfit if package.version]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    missing += [package.name for package in unfit if not package.version and package.name not in missing]
    versions = {package.name: {"version": package.version, "needed": package.needed} for package in old}
    values = {"ranks_python": ranks_python(), "unfit_versions": versions}
    if missing or old:
        remedy, command = _set_up("installs what the course needs")
        names = (*missing, *(f"{package.name}{package.needed}" for package in old))
        found = "; ".join([*([f"missing: {', '.join(missing)}"] if missing else []), *map(str, old)])
        return Probed("packages", found, False, remedy=remedy, values=values, missing=names, command=command)
    last = "the ranks' in an environment of their own" if hosted else "JupyterLab"
    found = f"torch {importlib.metadata.version('torch')}, ipyparallel, {last}"
    return Probed("packages", found, True, values=values)


def _shadowed() -> Iterator[Probed]:
    """Yield a line if packages on the PYTHONPATH come before the course's own, and whether those can be imported."""
    if not (packages := shadowed_packages()):
        return
    error, names = import_error(), [package.name for package in packages]
    folders = list(dict.fromkeys(package.folder for package in packages))
    found = f"{VARIABLE} brings {join_first(names, _SHOWN_PACKAGES)} from {', '.join(folders)}, before the course's own"
    remedy = (
        f"`make lab` leaves them out. Elsewhere, type `unset {VARIABLE}` first, or `env -u {VARIABLE} course doctor`"
    )
    values = {"packages": names, "folders": folders, "imports": not error}
    text = f"{found}. Importing fails: {error.rstrip('.')}" if error else found
    yield Probed(VARIABLE, text, False, bool(error), remedy, values=values, command=f"unset {VARIABLE}")


def _mpi() -> Probed:
    if importlib.util.find_spec("mpi4py") is None:
        remedy, command = _set_up("installs it")
        return Probed("MPI", "mpi4py is missing", False, remedy=remedy, missing=("mpi4py",), command=command)
    try:
        library = mpi_library()
    except CourseError as error:
        remedy, command = _set_up("brings one")
        found = str(error).rstrip(".")
        return Probed("MPI", found, False, remedy=remedy, missing=("MPI library",), command=command)
    try:
        mpiexec = find_mpiexec()
    except CourseError as error:  # whose text has its own remedy
        values = {"library": library}
        return Probed("MPI", str(error).rstrip("."), False, values=values, missing=("mpiexec",))
    launcher = launchers_mpi(mpiexec)
    values = {"library": library, "mpiexec": mpiexec, "launcher": launcher or None}
    if are_different(launcher, library):
        return Probed("MPI", different_mpis_text(mpiexec, launcher, library).rstrip("."), False, values=values)
    return Probed("MPI", f"{library}, started by {mpiexec}", True, values=values)


def _watching() -> Iterator[Probed]:
    """Yield a line if the system hides its processes, because then ranks cannot be watched."""
    if system.started_at(os.getpid()) is None:
        remedy = f"`{system.SHOW_PROCESSES}` shows them. Containers show them unless set up otherwise"
        yield Probed(
            "processes",
            "are hidden, so nothing tells whether ranks are still running",
            False,
            remedy=remedy,
            missing=("visible processes",),
            command=system.SHOW_PROCESSES,
        )


def _ranks() -> Iterator[Probed]:
    """Two ranks that start, send each other a message, and add up by torch."""
    what, remedy, command = "ranks", "", ""
    began = time.monotonic()
    try:
        with smoke_tests.two_ranks() as ranks:
            started = time.monotonic() - began
            seconds = ranks.run(smoke_tests.there_and_back, smoke_tests.MESSAGE_BYTES, smoke_tests.MESSAGES).results[0]
            size = bytes_text(smoke_tests.MESSAGE_BYTES)
            values = {
                "started_seconds": started,
                "message_bytes": smoke_tests.MESSAGE_BYTES,
                "message_seconds": seconds,
            }
            found = f"two, started in {started:.1f} s; {size} sent in {seconds_text(seconds)}"
            yield Probed("ranks", found, True, values=values)
            what, remedy = "gloo", "It uses this machine's loopback interface. Does a firewall block that?"
            added = ranks.run(smoke_tests.add_over_gloo, backend="gloo").results
            well = added == [3.0, 3.0]
            found = "torch computed a sum over it" if well else f"1 + 2 gave {added}"
            yield Probed("gloo", found, well, remedy=remedy, values={"sums": added})
    except CourseError as error:
        left = _left_behind()
        if what == "ranks" and left:
            remedy, command = (
                "`course sweep` ends ranks that an earlier start left behind. Then try again",
                "course sweep",
            )
        values = {"processes_left_behind": left}
        yield Probed(what, _in_a_line(error), False, remedy=remedy, values=values, command=command)


def _left_behind() -> int:
    """How many processes of ranks there are whose notebook no longer exists."""
    return sum(len(folder.processes()) for folder in RanksFolder.all() if not folder.living_owners())


def _in_a_line(error: CourseError) -> str:
    """The text without its line breaks and its last full stop."""
    return " ".join(str(error).split()).rstrip(".")


def _settings() -> Iterator[Probed]:
    """Yield the settings that are set here, and a line for each value and each name that is not allowed."""
    known = {setting.name: setting for setting in settings.SETTINGS}
    given = {name: text for name, text in sorted(os.environ.items()) if name.startswith(settings.PREFIX) and text}
    shown = [f"{name}={_shown(known[name], text)}" for name, text in given.items() if name in known]
    values = {name: _shown(known[name], text) for name, text in given.items() if name in known}
    yield Probed("settings", ", ".join(shown) or "none is set, and none is needed", True, values=values)
    for name in given:
        if name not in known:
            found = f"{name} is set, but the course has no such setting"
            yield Probed("settings", found, False, False, _meant(name, known), values={"unknown": name})
            continue
        try:
            known[name].value()
        except CourseError as error:
            yield Probed("settings", _in_a_line(error), False, False, values={"not_allowed": name})


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
    places = {
        "ranks' files": (settings.RUNTIME.name, runtime_root),
        "JupyterLab's files": (_OF_JUPYTER, lambda: Path(jupyter_runtime_dir())),
        "notes": (settings.HOME.name, course_home),
    }
    found: list[str] = []
    values: dict[str, object] = {}
    for what, (variable, folder_of) in places.items():
        try:
            folder = folder_of()
            with trial_file(folder) as file:
                if variable != _OF_JUPYTER:  # which needs no locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, RuntimeError, CourseError) as error:
            reason = getattr(error, "strerror", None) or _in_a_line(error)
            remedy = f"Set {variable} to a folder on this machine's own disk that you may write to"
            missing = (f"a folder for {what}",)
            needed = variable != settings.HOME.name
            return Probed("folders", f"{what} cannot be stored: {reason}", False, needed, remedy, missing=missing)
        if variable == _OF_JUPYTER:
            continue  # where they are is Jupyter's affair
        found.append(f"{what} in {folder}{_file_system(folder)}")
        values[variable] = {"folder": str(folder), "remote_file_system": _file_system(folder).strip(" ()") or None}
    return Probed("folders", "; ".join(found), True, values=values)


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
        return Probed("names", unknown, False, False, remedy, missing=("localhost",))
    own = sorted(address for address in addresses if ipaddress.ip_address(address.partition("%")[0]).is_loopback)
    if not own:
        return Probed(
            "names",
            f"`localhost` is {', '.join(sorted(addresses))}, which is a different machine",
            False,
            False,
            remedy,
            values={"localhost": sorted(addresses)},
        )
    return Probed("names", f"localhost is {', '.join(own)}", True, values={"localhost": own})


def _cores() -> Probed:
    allowed, machine = allowed_cores(), os.cpu_count() or 1
    found = f"{allowed} of the machine's {machine}"
    return Probed(
        "cores",
        found,
        allowed >= 2,
        needed=False,
        remedy="Everything runs, but ranks share the core, so measured times show little",
        values={"allowed": allowed, "machine": machine},
    )


def _memory() -> Probed:
    allowed = memory_bytes()
    return Probed(
        "memory",
        f"{allowed / GIB:.1f} GiB allowed",
        allowed >= ENOUGH_MEMORY,
        needed=False,
        remedy="Four ranks with torch need about 2 GiB, and several times more if they use GPUs. Close other programs",
        values={"allowed_bytes": allowed},
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
    shown = _driver_gpus()
    return Probed("GPUs", ", ".join(shown) or "none, and none is needed", True, values={"driver": list(shown)})


def _computing_gpus() -> Probed:
    """The same GPUs, and whether torch can compute on all of them."""
    shown, torch = _driver_gpus(), smoke_tests.ask_torch()
    values = {"driver": list(shown), "torch": list(torch.names), "cuda": torch.cuda, "answers": not torch.error}
    if not torch.error and len(torch.names) >= len(shown):
        found = f"torch computes on {', '.join(torch.names)}" if torch.names else "none, and none is needed"
        return Probed("GPUs", found, True, values=values)
    if torch.silent:
        found = f"{', '.join(shown) or 'none, and none is needed'}; torch did not answer: {torch.error}"
        return Probed("GPUs", found, False, False, "Is the machine busy? Then try again", values=values)
    if not shown:
        remedy, command = _set_up("installs it again")
        found = f"none, and torch fails: {torch.error}"
        return Probed("GPUs", found, False, remedy=remedy, values=values, missing=("torch",), command=command)
    found = f"fails: {torch.error}" if torch.error else f"{torch.version} computes on {len(torch.names)} of them"
    if torch.version and not torch.cuda:
        remedy = "This build of torch cannot use GPUs. `TORCH=auto make setup` installs one that can"
    else:
        remedy = "Is the driver older than torch's CUDA? Then `TORCH=auto make setup` installs one that fits it"
    command = "TORCH=auto make setup"
    if not may_write():
        remedy, command = f"Ask whoever installed {ROOT}: {remedy[0].lower()}{remedy[1:]}", ""
    found = f"{', '.join(shown)}; torch {found}"
    return Probed("GPUs", found, False, False, remedy, values=values, missing=("torch for GPUs",), command=command)


def _slurm(seconds: float) -> Probed:
    """Whether Slurm would take a job now, where it is installed, and whether its nodes could reach this machine."""
    if not (sbatch := shutil.which("sbatch")):
        return Probed("Slurm", "none, and none is needed", True, values={"sbatch": None})
    job, state = os.environ.get("SLURM_JOB_ID"), cluster_state(seconds)
    values = {
        "sbatch": sbatch,
        "version": state.version,
        "state": state.health.value,
        "silence": state.answer.silence and state.answer.silence.value,
        "partitions": list(state.open),
        "closed": dict(state.closed),
        "nodes": len(state.nodes),
        "nodes_up": state.nodes_up,
        "job": job,
        "address": None,
    }
    found, remedy = cluster_text(state)
    if state.health is not ClusterHealth.TAKES_JOBS:
        return Probed("Slurm", found, False, False, remedy, values=values)
    try:
        values["address"] = address()
    except CourseError as error:
        missing = ("an address that nodes reach",)
        return Probed("Slurm", f"{found}. {_in_a_line(error)}", False, False, values=values, missing=missing)
    return Probed("Slurm", f"{found}{f'; this is inside job {job}' if job else ''}", True, values=values)


def _links(tried: bool) -> Probed:
    """Whether ranks can be put behind emulated network links and, if that is tried, how much a link carries."""
    remedy = "Lessons that emulate slow links run without them here, and say so"
    if reason := "processes are hidden" if any(_watching()) else network.obstacle():
        return Probed("links", f"no: {reason.rstrip('.')}", False, False, remedy, values={"allowed": False})
    values: dict[str, object] = {"allowed": True}
    if not tried:
        return Probed("links", "allowed", True, values=values)
    try:
        carried, well = smoke_tests.carried_by_a_link()
    except CourseError as error:
        return Probed("links", f"allowed, but {_in_a_line(error)}", False, False, remedy, values=values)
    values |= {"asked_bits_per_second": smoke_tests.LINK, "carried_bits_per_second": carried}
    return Probed(
        "links",
        f"a link of {rate_text(smoke_tests.LINK)} carried {carried / 1e6:.0f}",
        well,
        False,
        "Other programs use the processor. Close them if links matter",
        values=values,
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
    missing, command = ((), "") if found else (("chromium",), "apt install chromium")
    shown = found or "no Chromium"
    values = {"path": found}
    return Probed("browser", shown, bool(found), False, remedy, values=values, missing=missing, command=command)


def _grading() -> Probed:
    """Whether `course grade` can run here, and how strictly."""
    is_hidden = any(_watching())
    hidden = "The system hides its processes, and the grader has to see them"
    reason = hidden if is_hidden else sandbox.obstacle()
    if reason is None:
        found = "`course grade` can run here, with each notebook in a sandbox"
        return Probed("grading", found, True, values={"mode": "sandbox"})
    if not system.LINUX:
        return Probed(
            "grading",
            "`course grade` runs on Linux alone, in a container of Linux for example",
            False,
            False,
            values={"mode": "none"},
        )
    found, mode = "`course grade` runs only with --trusted, which means without a sandbox", "trusted"
    if os.geteuid() == 0 and (is_hidden or sandbox.is_root()):
        found, mode = "`course grade` cannot run here: there is no sandbox, and root may not grade without it", "none"
    text, missing = f"{found}. {reason.rstrip('.')}", ("sandbox",)
    values = {"mode": mode}
    return Probed("grading", text, False, False, "Only teachers who grade need this", values=values, missing=missing)
