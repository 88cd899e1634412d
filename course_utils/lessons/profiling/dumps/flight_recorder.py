"""torch's Flight Recorder: each process keeps a list of its last collectives; after a hang `fr_trace` compares them.

The lists are kept over gloo as over NCCL, the last 2,000 entries of each process (`TORCH_FR_BUFFER_SIZE`). Over NCCL
torch writes them by itself when a collective runs into its timeout (`TORCH_FR_DUMP_TEMP_FILE` says where to); over gloo
one asks for them, as here: the processes are still there when a run was broken off.

Source: PyTorch, "Flight Recorder for Debugging Stuck Jobs" (tutorial); `torch.distributed.flight_recorder.fr_trace`.
"""

import pickle
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.errors import CourseError, RankError
from course_utils.lessons.profiling.dumps.recorder_comparison import recorded_groups
from course_utils.lessons.profiling.dumps.recorder_dumps import Dumps, dump_of
from course_utils.machine import ranks_python

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

Dump = dict[str, Any]
"""What a process has recorded: its version, its groups, and "entries", a collective each."""
PREFIX = "rank_"
_TOLD = re.compile(
    r"collective: \w+:(?P<operation>\w+).*?error msg: Culprit rank (?P<rank>\d+); (?P<error>[^\n]*)", re.S
)


@dataclass(frozen=True)
class Mismatch:
    """What fr_trace says of the first collective that is not the same on all ranks.

    Attributes:
        rank: the culprit, as it calls the rank that does something else than the others.
        operation: the others' collective, "all_reduce" for example.
        error: what is wrong with the culprit.
    """

    rank: int
    operation: str
    error: str


def recorded() -> Dump:
    """What this process has recorded."""
    from torch._C._distributed_c10d import _dump_fr_trace

    return pickle.loads(_dump_fr_trace())


def stuck(ranks: "Ranks", work: Callable[[], Any]) -> tuple[str, list[Dump]]:
    """Run what hangs on all ranks, over gloo, and ask each of them afterwards what it has recorded since.

    Returns:
        The course's own report, "" if the work came to its end; and each rank's dump.
    """
    before, message = ranks.run(_recorded).results, ""
    try:
        ranks.run(work, backend="gloo")
    except RankError as error:
        message = str(error)
    after = ranks.run(_recorded).results
    new = [since(dump, last_record(earlier)) for dump, earlier in zip(after, before, strict=True)]
    return message, numbered_from_1(new)


def _recorded(comm: Any) -> Dump:
    return recorded()


def last_record(dump: Dump) -> int:
    """The number of the last entry; -1 without any."""
    return max((entry["record_id"] for entry in dump["entries"]), default=-1)


def since(dump: Dump, record: int) -> Dump:
    """The entries behind this one, counted from 0; as if the process had begun there."""
    kept = [entry for entry in dump["entries"] if entry["record_id"] > record]
    return dump | {"entries": [entry | {"record_id": number} for number, entry in enumerate(kept)]}


def numbered_from_1(dumps: Sequence[Dump]) -> list[Dump]:
    """The dumps of all ranks, with the collectives of each group counted from 1, as if the groups were new."""
    first: dict[Any, int] = {}
    for entry in (entry for dump in dumps for entry in dump["entries"]):
        group, number = entry["process_group"], entry["collective_seq_id"]
        first[group] = min(number, first.get(group, number))
    return [
        dump
        | {
            "entries": [
                entry | {"collective_seq_id": entry["collective_seq_id"] - first[entry["process_group"]] + 1}
                for entry in dump["entries"]
            ]
        }
        for dump in dumps
    ]


def with_groups(dumps: Sequence[Dump]) -> list[Dump]:
    """Add the name and the ranks of each group to the dumps of all ranks, without which fr_trace ends with a KeyError.

    Over gloo, torch 2.13 leaves out the names, and forgets who is in a group once there is a second one. The entries
    have the names; who has used a group is in it.
    """
    read = Dumps({rank: dump_of(dump, rank) for rank, dump in enumerate(dumps)})
    config = {
        group.name: {"name": group.name, "desc": group.description, "ranks": str(list(group.members))}
        for group in recorded_groups(read)
    }
    return [
        dump | {"pg_config": {name: config[name] for name in config if str(rank) in config[name]["ranks"]}}
        for rank, dump in enumerate(dumps)
    ]


def write_dump(dump: Dump, folder: str | Path, rank: int) -> Path:
    """Write a rank's dump where fr_trace looks for it: `rank_0` and so on."""
    path = Path(folder) / f"{PREFIX}{rank}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(dump))
    return path


def fr_trace(folder: str | Path) -> str:
    """Run the `torchfrtrace` of the ranks' torch on a folder of dumps; its words.

    Raises:
        CourseError: it ended with an error. If torch is older than the course needs, the text says so, for torch 2.11's
            rejects what was recorded over gloo.
    """
    module = "torch.distributed.flight_recorder.fr_trace"
    command = [ranks_python(), "-m", module, str(folder), "--prefix", PREFIX]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        from course_utils.required_packages import unfit_package

        if torch := unfit_package("torch", ranks_python()):
            raise CourseError(f"torchfrtrace failed: {torch}. `course doctor` says how to get it.")
        raise CourseError(f"torchfrtrace: {done.stderr.strip().splitlines()[-1]}")
    return (done.stdout + done.stderr).replace("tabulate is not installed. Proceeding without it.", "").strip()


def culprit(words: str) -> Mismatch | None:
    """The first culprit that fr_trace names; None where it finds nothing."""
    found = _TOLD.search(words)
    return found and Mismatch(int(found["rank"]), found["operation"], found["error"].strip())


def compared(dumps: Sequence[Dump], folder: str | Path) -> Mismatch | None:
    """Leave the dumps of rank 0 and so on in a folder, in the place of others, and ask fr_trace for the culprit."""
    for old in Path(folder).glob(f"{PREFIX}*"):
        old.unlink()
    for rank, dump in enumerate(with_groups(dumps)):
        write_dump(dump, folder, rank)
    return culprit(fr_trace(folder))
