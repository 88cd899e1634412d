"""The ten logs, and where each comes from: tools/failing_launches/record.py, or messages that others have reported."""

import json
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.explain import CAUSES

LOGS = Path(__file__).parent / "logs"


@dataclass(frozen=True)
class Recording:
    """A failing launch.

    Attributes:
        failure: the name of its cause, one of `CAUSES`.
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
    if failure not in CAUSES:
        raise CourseError(f"There is no recording of {failure!r}. There are: {', '.join(CAUSES)}.")
    file = LOGS / failure.lower().replace(" ", "_")
    facts = json.loads(file.with_suffix(".json").read_text())
    for name in ("commands", "sources"):
        facts[name] = tuple(facts.get(name, ()))
    return Recording(log=file.with_suffix(".log").read_text(), **facts)
