"""What of the machine's files a sandbox shows: the system, Python and MPI, and of the course nothing.

The course may be installed anywhere, also below the folders of the system or beside Python's packages, and other copies
of it may lie there. They are found by what is in them and covered, each with its whole repository: the answers are in
it, and in its history.
"""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.syllabus import LESSONS

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "openmpi", "mpich")
_PROCESSORS = ("/sys/devices/system/cpu", "/sys/devices/system/node")  # MPI and torch count the cores
_PACKAGE = Path(__file__).resolve().parents[1].name
_PACKAGES = ("site-packages", "dist-packages")
_OF_A_REPOSITORY = frozenset((".git", "exercises", "notebooks", "pyproject.toml", "tests"))
_OF_THE_PACKAGE = frozenset(("syllabus.py", "lessons", "checks"))
_OF_GIT = frozenset(("HEAD", "objects", "refs"))
_OF_PYTHON = frozenset(("bin", "sbin", "etc", "include", "lib", "lib32", "lib64", "libexec", "share", "pyvenv.cfg"))
_NOTEBOOKS = frozenset(f"{lesson.stem}.ipynb" for lesson in LESSONS)
_AN_ARCHIVE = re.compile(rf"{_PACKAGE.replace('_', '[-_.]')}.*\.(whl|zip|tgz|bundle|tar(\.\w+)?)")
_LIBRARIES = """
import psutil, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(*{mapped.path for mapped in psutil.Process().memory_maps()}, sep="\\n")
"""


class _Step(IntEnum):
    """What happens to a path; of one path, in this order."""

    SHOW = 0
    COVER = 1


@dataclass(frozen=True)
class VisibleFiles:
    """What a sandbox shows and covers.

    Attributes:
        shown: folders of the system and of Python, which may lie within each other.
        covered: files and folders of the course in them.
    """

    shown: tuple[Path, ...]
    covered: tuple[Path, ...]

    def mounts(self) -> list[str]:
        """bubblewrap's arguments. Whatever lies within something else is mounted after it."""
        words = folders_above(Path("/etc/x")) + folders_above(Path(_PROCESSORS[0]))
        for link in filter(os.path.islink, _SYSTEM):
            words += ["--symlink", os.readlink(link), link]
        for processors in _PROCESSORS:
            words += ["--ro-bind-try", processors, processors]
        for name in _SETTINGS:
            words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        steps = [(path, _Step.SHOW) for path in self.shown] + [(path, _Step.COVER) for path in self.covered]
        for path, step in sorted(steps, key=lambda each: (len(each[0].parts), each)):
            words += _cover(path) if step == _Step.COVER else [*folders_above(path), *_show(path)]
        return words

    def evidence(self) -> list[str]:
        """A path in each covered folder, which a sandbox must not show."""
        found = []
        for folder in filter(Path.is_dir, self.covered):
            needed = {path.relative_to(folder).parts[0] for path in self.shown if path.is_relative_to(folder)}
            found += [str(folder / name) for name in sorted(os.listdir(folder)) if name not in needed][:1]
        return found


def folders_above(path: Path) -> list[str]:
    """Folders that the sandbox's user may look into; else bubblewrap makes them for nobody but itself."""
    above = [str(parent) for parent in reversed(path.parents) if len(parent.parts) > 1]
    return [word for folder in above for word in ("--perms", "0755", "--dir", folder)]


def _show(path: Path) -> list[str]:
    return ["--ro-bind", str(path), str(path)]


def _cover(path: Path) -> list[str]:
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]


@functools.cache
def visible_files() -> VisibleFiles:
    """What sandboxes of this process show and cover."""
    system = [Path(path) for path in _SYSTEM if os.path.isdir(path) and not os.path.islink(path)]
    python = _folders_of_python()
    outside = [folder for folder in python if not _is_within(folder, system)]
    found = list(_copies_in(system + [folder for folder in outside if not _is_within(folder.parent, outside)]))
    again = [folder for folder in python if _is_within(folder, found)]  # a venv in its repository
    for folder in again:
        found += _copies_in([folder])
    shown = dict.fromkeys([*system, *outside, *again])
    covered = [path for copy in dict.fromkeys(found) for path in _without_python(copy, set(python))]
    return VisibleFiles(tuple(shown), tuple(covered))


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _without_python(copy: Path, python: set[Path]) -> Iterator[Path]:
    """What is to be covered of a copy: its parts, where it is also a folder of Python's."""
    if copy not in python:
        yield copy
        return
    for path in copy.iterdir():
        if path.name not in _OF_PYTHON:
            yield path
        elif path.is_dir():
            yield from _copies_in([path])


def _copies_in(folders: Iterable[Path]) -> Iterator[Path]:
    """The repositories, packages, notebooks and archives of the course in these folders, and all histories of git."""
    for folder in folders:
        try:
            entries = {entry.name: entry for entry in os.scandir(folder)}
        except OSError:  # nor can the sandbox's user read it
            continue
        if _is_covered_whole(folder, entries.keys()):
            yield folder
            continue
        inside = []
        for name, entry in entries.items():
            if entry.is_dir(follow_symlinks=False):
                inside.append(folder / name)
            elif _AN_ARCHIVE.fullmatch(name) and entry.is_file(follow_symlinks=False):
                yield folder / name
        yield from _copies_in(inside)


def _is_covered_whole(folder: Path, names: Iterable[str]) -> bool:
    names = set(names)
    if folder.name in _PACKAGES:  # beside the course, others may have put their tests there
        return False
    is_repository = _PACKAGE in names and _names_in(folder / _PACKAGE) >= _OF_THE_PACKAGE and names & _OF_A_REPOSITORY
    return bool(is_repository or names >= _OF_THE_PACKAGE or names >= _OF_GIT or names & _NOTEBOOKS)


def _names_in(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _folders_of_python() -> tuple[Path, ...]:
    """Folders of Python, its packages and MPI, and those of libraries that MPI takes from elsewhere."""
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    named += [str(Path(program).resolve().parents[1]) for program in (sys.executable, find_mpiexec())]
    named += [entry for entry in sys.path if Path(entry).name in _PACKAGES]
    named += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    named += _folders_of_libraries()
    folders = {Path(name) for name in named} | {Path(name).resolve() for name in named}
    return tuple(sorted(folder for folder in folders if folder.is_dir() and len(folder.parts) > 1))


def _folders_of_libraries() -> list[str]:
    """Folders below /opt of which MPI has taken a library, whatever told it to."""
    if not os.path.isdir("/opt"):
        return []
    asked = subprocess.run([sys.executable, "-c", _LIBRARIES], capture_output=True, text=True, timeout=120, check=False)
    return sorted({os.path.dirname(path) for path in asked.stdout.splitlines() if path.startswith("/opt/")})
