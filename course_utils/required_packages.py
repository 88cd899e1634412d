"""The packages that pyproject.toml requires, and which of them are missing here or have a version that does not fit."""

import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from course_utils.syllabus import ROOT


@dataclass(frozen=True)
class UnfitPackage:
    """A required package that is missing, or of which a version is installed that does not fit.

    Attributes:
        name: by which pip knows it.
        version: that is installed; "" if it is missing.
        needed: the versions that fit, as in ">=2.13".
    """

    name: str
    version: str
    needed: str

    def __str__(self) -> str:
        if not self.version:
            return f"{self.name} is missing"
        return f"{self.name} {self.version} is installed, and the course needs {self.name}{self.needed}"


def required_packages() -> list[Requirement]:
    """Return what pyproject.toml requires on this system; nothing where that file is not to be seen."""
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except OSError:
        return []
    listed = [Requirement(line) for line in project["dependencies"]]
    return [requirement for requirement in listed if requirement.marker is None or requirement.marker.evaluate()]


def unfit_packages(python: str = sys.executable) -> list[UnfitPackage]:
    """Return the required packages that are missing or do not fit.

    Args:
        python: whose packages are meant; of one other than this process's, those of its environment.
    """
    path = _path_of(python)
    found = [_unfit(requirement, path) for requirement in required_packages()]
    return [package for package in found if package]


def unfit_package(name: str, python: str = sys.executable) -> UnfitPackage | None:
    """Return what does not fit about one package; None if it is as required, or not required."""
    required = [requirement for requirement in required_packages() if requirement.name == name]
    return _unfit(required[0], _path_of(python)) if required else None


def outdated_source(error: BaseException) -> UnfitPackage | None:
    """Return the package in which an error misses a name, if its version does not fit; None otherwise."""
    source = ""
    if isinstance(error, ImportError):
        source = error.name or ""
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        source = error.obj.__name__
    package = unfit_package(source.partition(".")[0]) if source else None
    return package if package and package.version else None


def _path_of(python: str) -> list[str]:
    """The folders in which a Python looks for packages."""
    if python == sys.executable:
        return sys.path
    return [str(folder) for folder in Path(python).parents[1].glob("lib/python3*/*-packages")]


def _unfit(requirement: Requirement, path: Sequence[str]) -> UnfitPackage | None:
    """What does not fit about the package, as Python would import it from this path.

    2.13.0a0+site counts as 2.13.0, because many containers have a build of that kind.
    """
    installed = next(iter(Distribution.discover(name=requirement.name, path=list(path))), None)
    version = installed.version if installed else ""
    with suppress(InvalidVersion):  # as PEP 440 writes them
        if version and requirement.specifier.contains(Version(version).base_version):
            return None
    return UnfitPackage(requirement.name, version, str(requirement.specifier))
