"""A trial of a job's nodes before its ranks start: do they see the folder, run this Python, and reach the notebook?

The job's script runs it on each node, in a step of its own, and hands in what it finds. Where a node sees the folder of
the ranks, that is a file in it. The exit status of the script gets through in any case.
The last part of it runs as `python -m course_utils.ranks.slurm.node_trial FOLDER`.
"""

import contextlib
import errno
import json
import os
import shlex
import socket
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from course_utils import settings
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm.hub import hub_file, read_whole

FOUND, UNSEEN, NOT_WRITABLE = 91, 92, 93
"""Exit statuses of a job's script: a trial file tells what was found; or its first node cannot write one, and why."""
LATE_SECONDS = 30
"""How long a shared file system may take to show a new folder to a node that sees the folder above it."""
_CONNECT_SECONDS = 10.0
_FILE_SECONDS = 20.0
"""How long the file may take to come from the node to the notebook."""
_MARK = "course-trial"
"""A site's own prolog of tasks may print something as well."""


class NodeTrouble(StrEnum):
    """What keeps ranks from a node."""

    FOLDER_UNSEEN = "folder unseen"
    FOLDER_NOT_WRITABLE = "folder not writable"
    PYTHON_MISSING = "python missing"
    PYTHON_FAILS = "python fails"
    HUB_FILE_MISSING = "hub file missing"
    UNREACHABLE = "unreachable"
    NO_SUCH_INTERFACE = "no such interface"


@dataclass(frozen=True)
class NodeFinding:
    """What a trial has found on a node.

    Attributes:
        node: by Slurm's name; "" for the first of the job, where that is not known.
        trouble: the decision.
        detail: what was tried, or its error: a path, an address, the last line that a program wrote.
        status: exit status of Python, 128 + the signal for a violent end; 0 where it is not about that.
    """

    node: str
    trouble: NodeTrouble
    detail: str = ""
    status: int = 0


def trial_lines(folder: Path, python: str) -> list[str]:
    """The lines of a job's script that try each node, and end the script where one is no good.

    Args:
        folder: of the ranks.
        python: under which they are to run.
    """
    file = shlex.quote(str(folder / "trial"))
    step = 'srun --export=ALL --mpi=none --cpu-bind=none --nodes="$SLURM_JOB_NUM_NODES"'
    step += ' --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1'
    return [
        f"found=$({step} /bin/sh -c {shlex.quote(_on_a_node(folder, python))} | sed -n 's/^{_MARK} //p')",
        'if [ -n "$found" ]; then',
        f"    {{ printf '%s\\n' \"$found\" > {file}.new && mv {file}.new {file}; }} 2>/dev/null && exit {FOUND}",
        f"    [ -d {shlex.quote(str(folder))} ] && exit {NOT_WRITABLE}",
        f"    exit {UNSEEN}",
        "fi",
    ]


def _on_a_node(folder: Path, python: str) -> str:
    """What the shell tries on a node; where Python runs, that goes on."""
    own, above, program = (shlex.quote(str(path)) for path in (folder, folder.parent, python))
    return f"""
tell() {{
    detail=$(printf %s "$2" | tr -cd '[:print:]' | tr -d '"\\\\' | tail -c 300)
    printf '{_MARK} {{"node": "%s", "trouble": "%s", "detail": "%s", "status": %s}}\\n' \\
        "${{SLURMD_NODENAME:-$(hostname)}}" "$1" "$detail" "${{3:-0}}"
    exit 0
}}
late=0
until [ -r {own}/facts.json ]; do
    if [ ! -d {above} ] || [ $late -ge {LATE_SECONDS} ]; then tell "{NodeTrouble.FOLDER_UNSEEN}" {own}; fi
    late=$((late + 1)); sleep 1
done
[ -w {own} ] || tell "{NodeTrouble.FOLDER_NOT_WRITABLE}" {own}
[ -x {program} ] || tell "{NodeTrouble.PYTHON_MISSING}" {program}
output=$({program} -P -m {__spec__.name} {own} 2>&1); status=$?
[ $status -eq 0 ] || tell "{NodeTrouble.PYTHON_FAILS}" "$(printf %s "$output" | tail -n 1)" $status
printf '%s\\n' "$output"
"""


def findings_of(folder: RanksFolder, exit_code: int) -> list[NodeFinding]:
    """What a trial has found, by the exit status of the job's script, and by its file if there is one.

    Empty where the script ended for another reason.
    """
    if exit_code in (UNSEEN, NOT_WRITABLE):
        trouble = NodeTrouble.FOLDER_UNSEEN if exit_code == UNSEEN else NodeTrouble.FOLDER_NOT_WRITABLE
        return [NodeFinding("", trouble, str(folder.path))]
    if exit_code != FOUND:
        return []
    deadline = time.monotonic() + _FILE_SECONDS
    while not (file := folder.path / "trial").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    found = []
    with contextlib.suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                fields = json.loads(line)
                found.append(NodeFinding(**{**fields, "trouble": NodeTrouble(fields["trouble"])}))
    return sorted(found, key=lambda finding: finding.node)


# --- on the node -----------------------------------------------------------------------------------------------------


def finding_here(folder: RanksFolder) -> tuple[NodeTrouble, str] | None:
    """What keeps ranks from this node, which sees the folder and runs Python; None for nothing."""
    chosen = settings.INTERFACE.value()
    names = [name for _, name in socket.if_nameindex()]
    if chosen and chosen not in names:
        return NodeTrouble.NO_SUCH_INTERFACE, ", ".join(names)
    deadline = time.monotonic() + LATE_SECONDS
    while not (hub := read_whole(hub_file(folder))):
        if time.monotonic() > deadline:
            return NodeTrouble.HUB_FILE_MISSING, str(hub_file(folder))
        time.sleep(0.5)
    host, _, port = hub["at"].removeprefix("tcp://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        why = error.strerror or (os.strerror(errno.ETIMEDOUT) if isinstance(error, TimeoutError) else str(error))
        return NodeTrouble.UNREACHABLE, f"{host}:{port} ({why})"
    return None


if __name__ == "__main__":
    if here := finding_here(RanksFolder(Path(sys.argv[1]))):
        name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        own = {"node": name, "trouble": here[0], "detail": here[1], "status": 0}
        print(_MARK, json.dumps(own))
