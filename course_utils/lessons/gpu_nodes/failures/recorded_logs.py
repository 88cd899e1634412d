"""The logs of failing launches, and how each was recorded, by tools/failing_launches/record.py."""

import json
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.advice import ADVICE

LOGS = Path(__file__).parent / "logs"


def _log_of(failure: str) -> Path:
    return LOGS / f"{failure.lower().replace(' ', '_')}.log"


RECORDED = tuple(failure for failure in ADVICE if _log_of(failure).exists())
"""The failures of which there is a log; of the others, many of which take broken machines, only the words are known."""


TO_PREDICT = ("out of memory", "no shared files")
"""Recordings that also have a number, counted from 1, so that a page can show them without giving their cause away."""


@dataclass(frozen=True)
class Recording:
    """A failing launch.

    Attributes:
        failure: the name of its cause, one of `RECORDED`.
        log: what it printed.
        commands: what was typed, a line for each node.
        versions: package → version.
        recorded: the day.
        changed: what is not as it was printed.
    """

    failure: str
    log: str
    commands: tuple[str, ...]
    versions: dict[str, str]
    changed: str
    recorded: str

    @property
    def origin(self) -> str:
        """Where the log comes from, in a line or two."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"Recorded on {self.recorded} with {versions}. Changed: {self.changed}."


def recording(failure: str | int) -> Recording:
    """Read one.

    Args:
        failure: its name, or its number in `TO_PREDICT`.

    Raises:
        CourseError: there is none of that name or number.
    """
    if isinstance(failure, int) and 1 <= failure <= len(TO_PREDICT):
        failure = TO_PREDICT[failure - 1]
    if failure not in RECORDED:
        raise CourseError(f"There is no recording of {failure!r}. There are: {', '.join(RECORDED)}.")
    return read_recording(_log_of(failure))


def read_recording(log: Path) -> Recording:
    """A log, with the facts that lie beside it."""
    facts = json.loads(log.with_suffix(".json").read_text())
    facts["commands"] = tuple(facts["commands"])
    return Recording(log=log.read_text(), **facts)
