"""What this machine has, and how much of it this process may use: cores, memory, GPUs."""

import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from course_utils import settings, system

PROC, ROOT = Path(system.CONTROL_GROUPS), Path(system.CONTROLLERS)


def control_groups(controller: str, proc: Path = PROC, root: Path = ROOT) -> Iterator[tuple[int, Path]]:
    """(version, folder) of every control group that limits this process: 2 with all groups above it, or 1.

    Args:
        controller: "cpu" or "memory".
    """
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            here = root / path.lstrip("/")
            yield from ((2, folder) for folder in (here, *here.parents) if folder.is_relative_to(root))
        elif controller in controllers.split(","):
            yield 1, root / controller / path.lstrip("/")


def allowed_cores() -> int:
    """Cores this process may use: the fewer of its affinity and its control group's quota, at least one."""
    affinity = len(system.cores())
    quota = _quota()
    return max(1, affinity if quota is None else min(affinity, math.floor(quota)))


def _quota(proc: Path = PROC, root: Path = ROOT) -> float | None:
    """The smallest CPU quota on the way up from this process's control group, in cores."""
    read = {1: _read_v1, 2: _read_v2}
    quotas = [read[version](folder) for version, folder in control_groups("cpu", proc, root)]
    return min((quota for quota in quotas if quota), default=None)


def _read_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _read_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        return quota / int((folder / "cpu.cfs_period_us").read_text()) if quota > 0 else None
    except (OSError, ValueError):
        return None


def threads_per_rank(ranks: int) -> int:
    """As many threads as fit: ranks × threads ≤ cores, and never less than one."""
    return max(1, allowed_cores() // ranks)


GIB = 1 << 30


def memory_bytes(root: Path = ROOT, proc: Path = PROC) -> int:
    """The memory this process may use: the machine's, or the least that its control groups allow."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    files = {1: "memory.limit_in_bytes", 2: "memory.max"}
    limits = [_number(folder / files[version]) for version, folder in control_groups("memory", proc, root)]
    return min([machine, *(limit for limit in limits if limit)])


def memory_left(root: Path = ROOT, proc: Path = PROC) -> int:
    """Bytes that can still be had: from the machine, or from the control group that has the least."""
    left = [system.memory_available()]
    files = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}
    for version, folder in control_groups("memory", proc, root):
        limit, used = (_number(folder / name) for name in files[version])
        if limit:
            statistics = folder / "memory.stat"
            inactive = re.search(r"^inactive_file (\d+)$", statistics.read_text(), re.MULTILINE)
            left.append(limit - used + int(inactive[1] if inactive else 0))  # such pages the kernel gives back
    return min(left)


def _number(file: Path) -> int:
    """The number a file holds; 0 where there is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def gpus(proc: Path = Path(system.NVIDIA_GPUS), dev: Path = Path("/dev")) -> list[str]:
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
    for entry in visible.split(","):
        if not entry.strip() or entry.strip() == "-1":  # CUDA too reads only as far as the first that is none
            break
        chosen.append(names.get(int(entry), "NVIDIA GPU") if entry.strip().isdecimal() else "NVIDIA GPU")
    return chosen[: len(minors)]


def ranks_python() -> str:
    """The Python that ranks run under: this one, or in a hosted notebook the one that tools/hosted.py names."""
    return settings.PYTHON.value() or sys.executable
