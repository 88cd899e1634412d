"""Which installation of the course this process runs: a Python, a checkout, and one version of its files.

Ranks and fork servers serve notebooks of their own installation alone. A different checkout or environment of the same
user, or the same one after a `git pull`, starts its own.
"""

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from course_utils import settings, system
from course_utils.machine import ranks_python

CHECKOUT = Path(__file__).parents[3]
"""The folder in which `course_utils` lies."""
PYTHONS_OWN = ("PYTHON", "LD_")
"""How variables begin that decide what a Python imports."""
_RANKS_OWN = ("HOME", "CUDA_VISIBLE_DEVICES")


def installation(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What is equal where a process of one notebook may stand in for one of another: its parts, by their names.

    Args:
        environment: of the process whose ranks are meant.
    """
    variables = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith(PYTHONS_OWN))
    return {
        "python": _place_of(Path(ranks_python())),
        "checkout": str(CHECKOUT.resolve()),
        "version": version(),
        "surroundings": _hash([*variables, *_share_of_the_machine()]),
    }


def installation_key(environment: Mapping[str, str] = os.environ) -> str:
    """A short name for an installation."""
    return _hash(sorted(installation(environment).items()))


def ranks_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings that ranks keep as long as they live: what a learner or a site has set, and whose home it is.

    With an account that several people share, the home may be all that tells them apart.
    """
    chosen = [known.name for known in settings.SETTINGS if known.set_by in (settings.LEARNER, settings.CLUSTER)]
    return {name: environment[name] for name in (*_RANKS_OWN, *chosen) if environment.get(name)}


@functools.cache
def version() -> str:
    """The version of the course that this process runs: that of the files when this was first called.

    A process goes on with the modules that it has imported, whatever becomes of the files. A notebook asks when it
    imports the course, a fork server before it forks, any other program at its first `start`.
    """
    return version_of_files()


def version_of_files() -> str:
    """What the times and sizes of all modules come to, by which Python too tells whether a `.pyc` is up to date."""
    package = str(CHECKOUT / "course_utils")
    return _hash(sorted((path.removeprefix(package), *status) for path, *status in _modules(package)))


def _modules(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, time in seconds and size of each module below a folder; `Path.rglob` would take twice as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _modules(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, int(status.st_mtime), status.st_size


def _place_of(python: Path) -> str:
    """An interpreter by its folder, which tells environments apart; `python` and `python3` in it are the same."""
    return str(python.parent.resolve() / python.resolve().name)


def _share_of_the_machine() -> list[str]:
    """What tells containers, and jobs of a cluster, apart that run on one machine."""
    if not system.LINUX:
        return []
    return [Path(system.CONTROL_GROUPS).read_text(), *system.namespaces("user", "mnt", "net", "pid", "ipc", "uts")]


def _hash(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
