"""What the doctor finds: one thing that was examined, in values and in a line, and whether the course can run so."""

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA = 1
"""Of what `course doctor --json` prints. It grows when a name changes its meaning or goes; names may be added."""


class Health(StrEnum):
    """What a probe came to."""

    OK = "ok"
    WARNING = "warning"
    """The course runs without it, but something in it does not, or less well."""
    FAILED = "failed"
    """The course cannot run without it."""
    NOT_TRIED = "not tried"


_MARKS = {Health.OK: "✓", Health.FAILED: "✗", Health.WARNING: "○", Health.NOT_TRIED: "–"}


@dataclass(frozen=True, slots=True)
class Probed:
    """One line of the doctor: what was examined, what was found, and what to do if it is missing.

    Attributes:
        what: was examined.
        found: in words.
        well: whether that is as it should be.
        needed: whether the course cannot run without it.
        remedy: what to do, in words.
        values: the same as `found`, for programs: numbers, names, paths.
        missing: the names of what is not there.
        command: for a shell; it installs or mends what is missing.
        tried: False where it was left out.
    """

    what: str
    found: str
    well: bool
    needed: bool = True
    remedy: str = ""
    values: Mapping[str, object] = field(default_factory=dict, compare=False)
    missing: tuple[str, ...] = field(default=(), compare=False)
    command: str = field(default="", compare=False)
    tried: bool = field(default=True, compare=False)

    @property
    def health(self) -> Health:
        """The decision."""
        if not self.tried:
            return Health.NOT_TRIED
        return Health.OK if self.well else Health.FAILED if self.needed else Health.WARNING

    def __str__(self) -> str:
        shows_remedy = self.remedy and self.health in (Health.FAILED, Health.WARNING)
        return f"{_MARKS[self.health]} {self.what:<11} {self.found}{f'. {self.remedy}' if shows_remedy else ''}"

    def as_json(self) -> dict[str, object]:
        """For `course doctor --json`."""
        return {
            "name": self.what.lower(),
            "health": self.health.value,
            "values": dict(self.values),
            "missing": list(self.missing),
            "command": self.command or None,
        }


def not_tried(*names: str) -> Iterable[Probed]:
    """Yield what was left out."""
    return (Probed(name, "not tried", True, tried=False) for name in names)


def can_run(findings: Iterable[Probed]) -> bool:
    """Whether the course can run where these were found."""
    return all(finding.health is not Health.FAILED for finding in findings)


def report_of(findings: Iterable[Probed]) -> dict[str, object]:
    """The object that `course doctor --json` prints."""
    findings = list(findings)
    return {
        "schema": SCHEMA,
        "can_run": can_run(findings),
        "versions": {
            "course": _version("course-utils"),
            "python": platform.python_version(),
            "torch": _version("torch"),
            "mpi4py": _version("mpi4py"),
            "mpi": next((finding.values.get("library") for finding in findings if finding.what == "MPI"), None),
        },
        "checks": [finding.as_json() for finding in findings],
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
