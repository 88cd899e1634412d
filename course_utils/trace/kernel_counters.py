"""What the kernel has counted for a process: bytes through its node's interface, and CPU time."""

import os
from pathlib import Path

ON_NODES = "COURSE_NODES"
"""Set in the environment of ranks that have nodes of their own."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")


def interface_bytes(pid: int) -> tuple[int, int]:
    """Bytes sent and received so far by the interface of the node in which a process is."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    fields = next(line for line in lines if line.lstrip().startswith("eth0:")).partition(":")[2].split()
    return int(fields[8]), int(fields[0])


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, its threads and the kernel's work for it included; counted in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def node_bytes() -> tuple[int, int] | None:
    """Bytes out of and into this rank's node so far; None where its ranks share memory."""
    try:
        return interface_bytes(os.getpid()) if os.environ.get(ON_NODES) else None
    except (OSError, StopIteration):
        return None
