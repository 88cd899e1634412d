"""The control groups of this process: where Linux says what it may use."""

from collections.abc import Iterator
from pathlib import Path

PROC, ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


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
