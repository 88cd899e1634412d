"""What the kernel has counted on the nodes: bytes through the interface of each."""

import os

from course_utils import system

ON_NODES = "COURSE_NODES"
"""Set in the environment of ranks that have nodes of their own."""


def interface_bytes(pid: int) -> tuple[int, int]:
    """Bytes sent and received so far by the interface of the node in which a process is."""
    return system.interfaces(pid)["eth0"]


def node_bytes() -> tuple[int, int] | None:
    """Bytes out of and into this rank's node so far; None where its ranks share memory."""
    try:
        return interface_bytes(os.getpid()) if os.environ.get(ON_NODES) else None
    except (OSError, KeyError):
        return None
