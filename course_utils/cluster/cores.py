"""How many cores this process may use, and how many threads that leaves for each rank."""

import math
import os
from pathlib import Path

from course_utils.cluster.cgroups import PROC, ROOT, control_groups


def allowed_cores() -> int:
    """Cores this process may use: the fewer of its affinity and its control group's quota, at least one."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
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
