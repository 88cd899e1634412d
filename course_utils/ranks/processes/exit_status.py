"""How a rank came to its end: by a signal, by its own exit, or for want of memory.

Each rank runs under a shell that waits for it and writes down its exit status, in a file named after its process.
"""

import contextlib
import signal
import time

from course_utils.ranks.processes.fault_dump import last_line
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.system import memory_kills
from course_utils.words import ranks_in_words

# Runs "$@" and writes its exit status, 128 + the signal for a violent end, into the folder that is its first argument.
SHELL = 'folder=$1; shift; COURSE_SHELL=$$ "$@"; status=$?; echo $status > "$folder/ended-$$"; exit $status'
_WHY = {"SIGABRT": ": a library gave up"}
_NCCL = " It has used NCCL, which ends its process where a collective takes longer than the timeout of its group."
_SECONDS_FOR_THE_SHELL = 3.0  # on a machine without memory everything takes longer


def describe_end(folder: RanksFolder, dead: dict[int, int]) -> str:
    """A sentence on the rank that died first.

    Args:
        dead: for each rank that has ended, the process of the shell that minded it.
    """
    deadline = time.monotonic() + _SECONDS_FOR_THE_SHELL
    while not (ended := _statuses(folder, dead)) and time.monotonic() < deadline:
        time.sleep(0.01)
    if not ended:
        return f"{ranks_in_words(sorted(dead))} ended."
    _, rank, status = min(ended)
    source_line = last_line(folder.fault_file(rank)) if status > 128 else ""
    by_nccl = status == 128 + signal.SIGABRT and folder.nccl_file(rank).exists()
    text = end_text(f"rank {rank}", status, folder.facts().get("memory_kills", 0), source_line)
    return f"{text}{_NCCL if by_nccl else ''}"


def end_text(who: str, status: int, kills_before: int, source_line: str) -> str:
    """A sentence on an end.

    Args:
        who: ended, such as "rank 2".
        status: exit status; above 128 it stands for a signal.
        kills_before: `memory_kills()` when the rank was started.
        source_line: the learner's line that it was in; "" where that is not known.
    """
    if status == 128 + signal.SIGKILL and memory_kills() > kills_before:
        return f"{who} was ended by the system: there was no memory left (signal 9, SIGKILL)."
    return f"{_end_clause(who, status)}{source_line and f', at {source_line}'}."


def status_text(who: str, status: int) -> str:
    """A sentence on an exit status; above 128 it stands for a signal."""
    return f"{_end_clause(who, status)}."


def _end_clause(who: str, status: int) -> str:
    if status <= 128:
        return f"{who} ended itself, with exit code {status}"
    try:
        name = signal.Signals(status - 128).name
    except ValueError:
        name = "unknown"
    return f"{who} was ended by signal {status - 128}, {name}{_WHY.get(name, '')}"


def _statuses(folder: RanksFolder, dead: dict[int, int]) -> list[tuple[float, int, int]]:
    """(when, rank, status) of those whose shell has written it down."""
    found = []
    for rank, shell in dead.items():
        file = folder.path / f"ended-{shell}"
        with contextlib.suppress(OSError, ValueError):
            found.append((file.stat().st_mtime, rank, int(file.read_text())))
    return found
