"""The sandbox for a stranger's processes, made by bubblewrap: nothing is in it but what is named here.

In sight, and read-only: the system's programs and libraries, Python and its packages, and a copy of the course without
answers. Writable: two folders in memory that nobody else sees. The process numbers, the network (loopback alone), the
shared memory and the name of the machine are the box's own, and so is the user, who owns nothing.

Source: bubblewrap, https://github.com/containers/bubblewrap, its manual bwrap(1).
"""

import functools
import itertools
import json
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
from course_utils.teacher.system_calls import library, write_filter
from course_utils.teacher.visible_files import visible_files

PACKAGES, HOME, LINE = "/course", "/home/learner", "/line"
"""In the box: where the course lies, the writable folder, and the socket to the grader."""
_NAME = "box"  # of its machine
_FILTER = "system_calls"
_NOBODY = 65534
_ROOTS_USERS = 1_900_000_000
"""Users from here on own no file: where root grades, each set of ranks has one of its own, of the many of a process."""
_OF_A_PROCESS = 256
_numbers = itertools.count()
_FIRST_TO_END = ("choom", "--adjust", "1000", "--")
"""When memory is short, the kernel ends first what is in the box."""
_IN_MEMORY = str(1 << 30)  # bytes that each writable folder may hold
_PROBE = "import json, os, sys; print(json.dumps([os.getuid(), *filter(os.path.lexists, sys.argv[1:])]))"
"""Run in a box: which user it is, and which of these paths it sees."""


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
        mounts += [*visible_files().mounts(), "--perms", "1777", "--size", _IN_MEMORY, "--tmpfs", "/dev/shm"]
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
        probe = box.command([sys.executable, "-c", _PROBE, *visible_files().evidence()])
        done = subprocess.run(probe, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 0:
        user, *in_sight = json.loads(done.stdout)
        if in_sight:
            return (
                f"The sandbox would show {in_sight[0]}, which belongs to a copy of the course with its solutions. "
                "Move that copy out of the folders of the system and of Python."
            )
        if user == box.user:
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
