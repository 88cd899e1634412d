"""How many cores this process may use, and how many threads that leaves for each rank."""

import math
import os
from pathlib import Path


def allowed_cores() -> int:
    """Cores this process may use: the fewer of its affinity and its control group's quota, at least one."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return max(1, affinity if quota is None else min(affinity, math.floor(quota)))


def _quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The smallest CPU quota on the way up from this process's control group (version 2, or 1), in cores."""
    quotas = []
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            here = root / path.lstrip("/")
            quotas += [_read_v2(folder / "cpu.max") for folder in (here, *here.parents) if folder.is_relative_to(root)]
        elif "cpu" in controllers.split(","):
            quotas.append(_read_v1(root / "cpu" / path.lstrip("/")))
    return min((quota for quota in quotas if quota), default=None)


def _read_v2(file: Path) -> float | None:
    try:
        quota, period = file.read_text().split()
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
