"""What cells of the lesson printed in jobs of a real Slurm, for readers who have none.

`tools/record_slurm_jobs.py` runs those cells and writes the files anew.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError

RECORDED_JOBS = {"batch_job": "hand_in(", "ranks_in_a_job": 'where="slurm"'}
"""The name of a recording → what only the cell that it comes from contains."""
FOLDER = Path(__file__).parent / "recorded"
_WIDTH = 88


@dataclass(frozen=True)
class RecordedOutput:
    """What a cell printed.

    Attributes:
        output: the lines.
        machine: where it ran, in a sentence.
        date: the day, as 2026-11-29.
        versions: program → version.
    """

    output: str
    machine: str
    date: str
    versions: dict[str, str]

    def __str__(self) -> str:
        """Return the output below two lines that say where and when it was recorded."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        origin = f"RECORDED on {self.date} with {versions}. {self.machine}"
        return f"{textwrap.fill(origin, _WIDTH)}\n\n{self.output.rstrip()}"


def recorded_output(name: str) -> RecordedOutput:
    """Read a recording.

    Raises:
        CourseError: there is none of that name.
    """
    if name not in RECORDED_JOBS:
        raise CourseError(f"There is no recording of {name!r}. There are: {', '.join(RECORDED_JOBS)}.")
    return RecordedOutput(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
