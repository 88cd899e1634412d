"""The ten logs, and where each comes from: tools/failing_launches/record.py, or messages that others have reported."""

import json
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.explain import CAUSES

LOGS = Path(__file__).parent / "logs"


def _log_of(failure: str) -> Path:
    return LOGS / f"{failure.lower().replace(' ', '_')}.log"


RECORDED = tuple(cause for cause in CAUSES if _log_of(cause).exists())
"""The causes of which there is a log; of the others, which take a GPU, only the words are known."""


@dataclass(frozen=True)
class Recording:
    """A failing launch.

    Attributes:
        failure: the name of its cause, one of `RECORDED`.
        log: what it printed.
        commands: what was typed, a line for each node.
        versions: package → version.
        recorded: the day; "" where the log was not recorded.
        sources: addresses of the messages, where it was not.
        changed: what is not as it was printed.
    """

    failure: str
    log: str
    commands: tuple[str, ...]
    versions: dict[str, str]
    changed: str
    recorded: str = ""
    sources: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Where the log comes from, in a line or two."""
        if not self.recorded:
            return f"Not recorded, this takes GPUs: put together from messages in {', '.join(self.sources)}."
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"Recorded on {self.recorded} with {versions}. Changed: {self.changed}."


def recording(failure: str) -> Recording:
    """Read one.

    Raises:
        CourseError: there is none of that name.
    """
    if failure not in RECORDED:
        raise CourseError(f"There is no recording of {failure!r}. There are: {', '.join(RECORDED)}.")
    facts = json.loads(_log_of(failure).with_suffix(".json").read_text())
    for name in ("commands", "sources"):
        facts[name] = tuple(facts.get(name, ()))
    return Recording(log=_log_of(failure).read_text(), **facts)
