"""The sandbox for a stranger's processes, made by bubblewrap: nothing is in it but what is named here.

In sight, and read-only: the system's programs and libraries, Python and its packages, and a copy of the course without
answers. Writable: two folders in memory that nobody else sees. The process numbers, the network (loopback alone), the
shared memory and the name of the machine are the box's own, and so is the user, who owns nothing.

Source: bubblewrap, https://github.com/containers/bubblewrap, its manual bwrap(1).
"""

import functools
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils import system
from course_utils.ranks.links.network import no_namespaces
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.teacher.system_calls import library, write_filter

PACKAGES, HOME, LINE = "/course", "/home/learner", "/line"
"""In the box: where the course lies, the writable folder, and the socket to the grader."""
_NAME = "box"  # of its machine
_FILTER = "system_calls"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "openmpi", "mpich")
_PROCESSORS = ("/sys/devices/system/cpu", "/sys/devices/system/node")  # MPI and torch count the cores
_NOBODY = 65534
_ROOTS_USERS = 1_900_000_000
"""Users from here on own no file: where root grades, each set of ranks has one of its own, of the many of a process."""
_OF_A_PROCESS = 256
_numbers = itertools.count()
_FIRST_TO_END = ("choom", "--adjust", "1000", "--")
"""When memory is short, the kernel ends first what is in the box."""
_IN_MEMORY = str(1 << 30)  # bytes that each writable folder may hold


@dataclass(frozen=True)
class Sandbox:
    """What one box needs.

    Attributes:
        folder: outside; holds the socket `line` and, in `package`, the copy of the course.
        user: its number; the kernel holds each user to limits of its own.
    """

    folder: Path
    user: int

    @classmethod
    def of(cls, folder: Path) -> "Sandbox":
        """A box whose files lie in a folder, with a user that no box before it had."""
        own = _ROOTS_USERS + os.getpid() * _OF_A_PROCESS + next(_numbers) % _OF_A_PROCESS
        box = cls(folder, own if is_root() else _NOBODY)
        box._write_settings()
        return box

    def command(self, inside: Sequence[str]) -> list[str]:
        """The command that runs another in the box. The processes in it end with the one that starts it."""
        etc = self.folder / "etc"
        mounts = []
        for writable in ("/tmp", HOME):  # first: the course may be installed in folders below them
            mounts += ["--perms", "1777", "--size", _IN_MEMORY, "--tmpfs", writable]
        mounts += [*_mounts(), "--perms", "1777", "--size", _IN_MEMORY, "--tmpfs", "/dev/shm"]
        mounts += ["--ro-bind", str(self.folder / "package"), PACKAGES]
        for name in ("passwd", "group", "hosts", "nsswitch.conf"):
            mounts += ["--ro-bind", str(etc / name), f"/etc/{name}"]
        if (self.folder / "line").exists():
            mounts += ["--ro-bind", str(self.folder / "line"), LINE]
        begin = [*_FIRST_TO_END, *self._filtered(), *mounts, "--remount-ro", "/", "--chdir", HOME]
        return [*begin, "--", *_as(self.user), *inside]

    def _filtered(self) -> list[str]:
        """bubblewrap with the filter of system calls, which it reads from a descriptor."""
        return ["sh", "-c", 'exec "$@" 9< "$0"', str(self.folder / _FILTER), *_bwrap(), "--seccomp", "9"]

    def give(self, *places: Path) -> None:
        """Let the box's user read and write these files, or sockets, where root has made them."""
        if is_root():
            for folder in places:
                os.chown(folder, self.user, self.user)

    def _write_settings(self) -> None:
        etc = self.folder / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "passwd").write_text(f"learner:x:{self.user}:{self.user}::{HOME}:/bin/sh\n")
        (etc / "group").write_text(f"learner:x:{self.user}:\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost {_NAME}\n")
        (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        with (self.folder / _FILTER).open("wb") as file:
            write_filter(file)
        for path in (etc, *etc.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)


@functools.cache
def obstacle() -> str | None:
    """Why there can be no box here; None where there can."""
    if not system.LINUX:
        return "Submissions are marked on Linux alone; in a container of Linux this works on every system."
    for tool, package in {"bwrap": "bubblewrap", "choom": "util-linux", "setpriv": "util-linux"}.items():
        if not shutil.which(tool):
            return f"`{tool}` is missing: `apt install {package}` brings it."
    try:
        library()
    except RuntimeError:
        return "libseccomp is missing: `apt install libseccomp2` brings it."
    with tempfile.TemporaryDirectory() as folder:
        box = Sandbox.of(Path(folder))
        (box.folder / "package").mkdir()
        probe = box.command([sys.executable, "-c", "import os; print(os.getuid())"])
        done = subprocess.run(probe, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 0 and done.stdout.strip() == str(box.user):
        return None
    last_line = (done.stderr.strip() or "no reason given").splitlines()[-1]
    return f"bubblewrap cannot make a box: {no_namespaces(last_line)}"


def is_root() -> bool:
    """Whether this process may become any user: root, and not only in a container that knows few users."""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]


def _bwrap() -> list[str]:
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid"]
    command += ["--unshare-net", "--unshare-uts", "--hostname", _NAME, "--unshare-cgroup-try"]
    if not is_root():  # who needs no namespace of users, and becomes another for good
        command += ["--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY)]
    return command


def _as(user: int) -> list[str]:
    """What must stand before a command that is to run as another user; nothing where there is no choice."""
    if not is_root():
        return []
    ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", *ids, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def _mounts() -> list[str]:
    """What is in sight of the system and of Python; nothing of it can be written."""
    mounts = _folders_above(Path("/etc/x")) + _folders_above(Path(_PROCESSORS[0]))
    for path in _SYSTEM:
        if os.path.islink(path):
            mounts += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            mounts += ["--ro-bind", path, path]
    for name in _SETTINGS:
        mounts += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for path in _PROCESSORS:
        mounts += ["--ro-bind-try", path, path]
    mounts += ["--proc", "/proc", "--dev", "/dev"]
    for folder in _of_python():
        mounts += [*_folders_above(folder), "--ro-bind", str(folder), str(folder)]
    package = Path(__file__).resolve().parents[1]
    if any(package.is_relative_to(mounted) for mounted in (*_of_python(), *map(Path, _SYSTEM))):
        mounts += ["--tmpfs", str(package)]  # installed beside other packages; the answers stand in it
    return mounts


def _folders_above(path: Path) -> list[str]:
    """Folders that the box's user may look into; else bubblewrap makes them for nobody but itself."""
    above = [str(parent) for parent in reversed(path.parents) if len(parent.parts) > 1]
    return [word for folder in above for word in ("--perms", "0755", "--dir", folder)]


@functools.cache
def _of_python() -> tuple[Path, ...]:
    """Folders of Python, its packages and MPI that do not lie within another of them, or in the system's."""
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    named += [str(Path(program).resolve().parents[1]) for program in (sys.executable, find_mpiexec())]
    named += [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    named += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    folders = {Path(name) for name in named} | {Path(name).resolve() for name in named}
    folders = {folder for folder in folders if folder.is_dir() and len(folder.parts) > 1}
    outside = {folder for folder in folders if not any(folder.is_relative_to(system) for system in _SYSTEM)}
    return tuple(sorted(folder for folder in outside if outside.isdisjoint(folder.parents)))
