"""Cut a log into launches, and tell how each ended."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from course_utils.lessons.gpu_nodes.failures.log_line import Line

_BEGIN = re.compile(r"^\++ (?:srun|torchrun|mpirun|mpiexec|accelerate|deepspeed|python)\b")
_FAILED = re.compile(
    r"^\S*(?:Error|Exception)\b|\w+Error: |ChildFailedError|srun: error|slurmstepd\S*: error|core dumped"
    r"|Segmentation fault|: error: |\[E\d*|exitcode|not enough slots|ERRORS_ARE_FATAL"
)
_CANCELLED = re.compile(r"\bCANCELLED\b")


class LaunchEnding(Enum):
    """How a launch ended."""

    FAILED = auto()
    CANCELLED = auto()
    """Slurm ended it: by `scancel`, at its time limit, for a different job, or because a node failed."""
    ENDED_WELL = auto()
    UNKNOWN = auto()
    """It stops without a word."""


@dataclass(frozen=True)
class LoggedLaunch:
    """A launch of a program on its ranks.

    Attributes:
        lines: what it wrote.
        ending: how it ended.
        world_size: the number of ranks, as far as the log tells; 0 if it tells nothing.
        attempts: how many times torchrun started the ranks.
    """

    lines: tuple[Line, ...]
    ending: LaunchEnding
    world_size: int
    attempts: int = 1


def launches_of(lines: Sequence[Line]) -> list[LoggedLaunch]:
    """The launches in a log, the latest last."""
    starts = [index for index, line in enumerate(lines) if _BEGIN.search(line.text)]
    starts = [0, *starts[1:]] if starts else [0]
    cuts = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)])]
    return [LoggedLaunch(tuple(cut), _ending(cut), _world_size(cut)) for cut in cuts if cut]


def _ending(lines: Sequence[Line]) -> LaunchEnding:
    if any(_CANCELLED.search(line.text) for line in lines):
        return LaunchEnding.CANCELLED
    if any(_FAILED.search(line.text) for line in lines):
        return LaunchEnding.FAILED
    return LaunchEnding.UNKNOWN


def _world_size(lines: Sequence[Line]) -> int:
    return max((line.rank + 1 for line in lines if line.rank is not None), default=0)
