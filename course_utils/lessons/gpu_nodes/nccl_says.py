"""What NCCL tells of a start under NCCL_DEBUG=INFO: how many nodes it sees, and over what its ranks talk."""

import re
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.recorded_logs import Recording, read_recording

MATTERS = re.compile(r"Bootstrap: Using|Using network|nNodes|\[send\] via|via P2P|via SHM|Connected all rings")
WAYS = {"P2P": "a", "SHM": "b", "NET/IB": "c", "NET/Socket": "d"}
"""What comes after "via" → the letter of lesson 13's question."""


def nccl_start() -> Recording:
    """The log of a start that went well."""
    return read_recording(Path(__file__).parent / "recorded" / "nccl_start.log")


def lines_that_matter(log: str) -> list[str]:
    """Those of NCCL's lines that say who meets where, and over what; of like lines of a process the first one."""
    seen, kept = set(), []
    for line in log.splitlines():
        found = MATTERS.search(line)
        if found and (key := (line.split("[", 1)[0], found[0])) not in seen:
            seen.add(key)
            kept.append(re.sub(r" comm 0x\w+", "", line))
    return kept


def ways(log: str) -> str:
    """The letter of the way that the ranks talk over.

    Raises:
        CourseError: the log does not say, or names several.
    """
    found = {WAYS[name] for name in re.findall(r"via (P2P|SHM|NET/IB|NET/Socket)", log)}
    if len(found) != 1:
        raise CourseError(f"The log names {len(found)} ways between ranks; one is needed. NCCL_DEBUG=INFO tells them.")
    return found.pop()
