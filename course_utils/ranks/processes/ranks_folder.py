"""The folder of a set of ranks: who owns them, which processes they are, and how all of it ends.

Each set of ranks has a folder of its own, readable by its user alone. Every process of the set carries the folder's
path in its environment, so none can be missed: not one that lost its parent, nor one whose number nobody wrote down.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import settings, system
from course_utils.errors import CourseError
from course_utils.system import LINUX, started_at

MARK = settings.RANKS.name


def runtime_root() -> Path:
    """Where the folders lie: $COURSE_RUNTIME, the user's runtime directory, or a private folder under /tmp.

    Raises:
        CourseError: it cannot be made, cannot be written to, or belongs to a different user.
    """
    if chosen := settings.RUNTIME.value():
        root = chosen.absolute()  # a notebook may go to another folder
    elif (own := os.environ.get("XDG_RUNTIME_DIR")) and os.access(own, os.W_OK):
        root = Path(own) / "course"
    else:
        root = Path(tempfile.gettempdir()) / f"course-{os.getuid()}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if root.stat().st_uid != os.getuid():
            raise CourseError(f"{root} belongs to a different user. Set COURSE_RUNTIME to a folder of your own.")
    except OSError as error:
        raise CourseError(
            f"Ranks need a folder for their files, and {root} cannot be used ({error.strerror}). "
            "Set COURSE_RUNTIME to a folder that can be written to."
        ) from None
    return root


def shared_root(made: bool = False) -> Path:
    """Where the folders of ranks on other nodes lie: $COURSE_SHARED, or a folder in the home directory.

    Args:
        made: make it, if it is not there.

    Raises:
        CourseError: it cannot be made.
    """
    root = settings.SHARED.value()
    if made:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CourseError(unwritable_text(root, error.strerror)) from None
    return root


def unwritable_text(root: Path, why: str | None) -> str:
    """What to do where nothing can be written to a folder of ranks' folders.

    Args:
        root: of this machine's ranks, or of those on other nodes.
        why: the system's words.
    """
    if root != settings.SHARED.value():
        return f"Nothing can be written to {root} ({why}). Make room, or set {settings.RUNTIME.name} elsewhere."
    if os.environ.get(settings.SHARED.name):
        named, remedy = f"{settings.SHARED.name}={root}", "there, or choose a different folder that all nodes see"
    else:
        named = f"{root}, a folder in your home directory"
        remedy = f"in your home directory, or set {settings.SHARED.name} to a different folder that all nodes see"
    return f"Nothing can be written to {named} ({why}). Make room {remedy}."


def this_machine() -> dict[str, str]:
    """What a folder's processes are known by: their numbers mean nothing on a different host or in a container."""
    return {"host": socket.gethostname(), "process_namespace": "".join(system.namespaces("pid") if LINUX else [])}


@contextlib.contextmanager
def lock_on(folder: Path) -> Iterator[None]:
    """Let one process at a time decide something about a folder; leaves nothing behind in it.

    On a disk that cannot lock folders (some that come over a network) it lets everybody: then two notebooks that start
    ranks at the same moment each have their own.
    """
    descriptor = None
    try:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def full_disk_in_words(root: Path) -> Iterator[None]:
    """Turn the error of a disk that has filled up into a line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        raise CourseError(unwritable_text(root, error.strerror)) from None


@dataclass(frozen=True)
class RanksFolder:
    """One set of ranks on disk."""

    path: Path

    @classmethod
    def new(cls, root: Path | None = None) -> "RanksFolder":
        """A fresh folder, mode 0700, in `runtime_root()` or where told."""
        root = root or runtime_root()
        path = None
        try:
            path = tempfile.mkdtemp(prefix="ranks-", dir=root)
            folder = cls(Path(path))
            folder.owners.mkdir(mode=0o700)
            folder.write_facts(**this_machine())
        except OSError as error:
            if path:
                shutil.rmtree(path, ignore_errors=True)
            raise CourseError(unwritable_text(root, error.strerror)) from None
        return folder

    @classmethod
    def all(cls) -> list["RanksFolder"]:
        """Every folder whose processes can be seen here, the newest first: other machines may share the file system."""
        found = [cls(path) for root in (runtime_root(), shared_root()) for path in root.glob("ranks-*")]
        return sorted((folder for folder in found if folder.can_be_seen()), key=lambda folder: folder.age())

    def can_be_seen(self) -> bool:
        """Do the numbers of its processes mean anything here?"""
        facts = self.facts()
        return all(facts.get(name, value) == value for name, value in this_machine().items())

    def age(self) -> float:
        """For how many seconds no file was made or removed in the folder; −1 where it has gone meanwhile."""
        try:
            return time.time() - self.path.stat().st_mtime
        except FileNotFoundError:
            return -1.0

    @property
    def owners(self) -> Path:
        return self.path / "owners"

    @property
    def connection_file(self) -> Path:
        return self.path / "security" / "ipcontroller-client.json"

    def activity_file(self, rank: int) -> Path:
        return self.path / f"activity-{rank}"

    def a_rank_has_ended(self) -> bool:
        """Has a rank's shell written down its exit status?"""
        return any(self.path.glob("ended-*"))

    def fault_file(self, rank: int) -> Path:
        """Into which a rank writes where it is, when it crashes or is asked to."""
        return self.path / f"fault-{rank}"

    def question_file(self, rank: int) -> Path:
        """A pipe: a rank writes down where its code stands whenever a byte comes through it."""
        return self.path / f"question-{rank}"

    def nccl_file(self, rank: int) -> Path:
        """Which is there once a rank has made a group over NCCL."""
        return self.path / f"nccl-{rank}"

    # --- owners: the kernels that use the ranks ---------------------------------------------------------------------

    def own(self, pid: int | None = None) -> None:
        """Count a process, this one unless told, among those for which the ranks are kept."""
        pid = pid or os.getpid()
        (self.owners / f"{pid}-{started_at(pid)}").touch(mode=0o600)

    def disown(self) -> None:
        """This process needs the ranks no more."""
        with contextlib.suppress(OSError):
            (self.owners / f"{os.getpid()}-{started_at(os.getpid())}").unlink()

    def join(self) -> bool:
        """Own ranks that somebody else owns too; False where there are none any more, or they are being ended."""
        with lock_on(self.path):
            if not self.is_kept():
                return False
            self.own()
            return True

    def leave(self) -> bool:
        """Disown, and end the set when nobody else owns it; whether it has ended."""
        self.disown()
        return not self.path.exists() or self.end_unless_owned()

    def end_unless_owned(self) -> bool:
        """End the set if it has no owner, and from this decision on it gets none; whether it was so."""
        with lock_on(self.path):
            if self.living_owners():
                return False
            with contextlib.suppress(OSError):
                self._ending.touch(mode=0o600)
        self.end()
        return True

    def is_kept(self) -> bool:
        """Does somebody own the set, and has nobody begun to end it?"""
        return bool(self.living_owners()) and not self._ending.exists()

    @property
    def _ending(self) -> Path:
        return self.path / "ending"

    def living_owners(self) -> list[int]:
        """The owners that still run."""
        try:
            entries = [entry.name.split("-") for entry in self.owners.iterdir()]
        except OSError:
            return []
        return [int(pid) for pid, start in entries if str(started_at(int(pid))) == start]

    def other_owners(self) -> list[int]:
        """The same without this process."""
        return [pid for pid in self.living_owners() if pid != os.getpid()]

    # --- what is known about the set --------------------------------------------------------------------------------

    def write_facts(self, **facts: object) -> None:
        """Keep what a kernel that takes over must know."""
        scratch = self.path / "facts.new"
        scratch.touch(mode=0o600)
        scratch.write_text(json.dumps({**self.facts(), **facts}))
        scratch.replace(self.path / "facts.json")

    def facts(self) -> dict:
        """What was kept; empty before there is anything."""
        try:
            return json.loads((self.path / "facts.json").read_text())
        except (OSError, ValueError):
            return {}

    # --- the end ----------------------------------------------------------------------------------------------------

    def processes(self) -> list[int]:
        """Every living process that carries this folder's mark, but for the one that asks."""
        return [pid for pid, mark in system.marked(MARK) if mark == str(self.path) and pid != os.getpid()]

    def shared_memory(self) -> set[str]:
        """What processes of this set have mapped of shared memory, and what still has a name."""
        return set().union(*map(system.shared_names_of, self.processes()))

    def end(self, grace: float = 0.3) -> None:
        """End every process of the set, then remove what they left in shared memory, then the folder.

        What runs on other nodes ends by a command of its own, which the facts keep as "end_with".
        """
        if command := self.facts().get("end_with"):
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, timeout=30, check=False)
        leftovers = self.shared_memory() | set(self.facts().get("shared_memory", []))
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
            deadline = time.monotonic() + patience
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.02)
        for name in leftovers:
            system.remove_shared(name)
        shutil.rmtree(self.path, ignore_errors=True)


def sweep() -> list[str]:
    """End every set of ranks that has no owner left; returns a line for each thing that was cleared away."""
    lines = []
    for folder in RanksFolder.all():
        if folder.age() > 5 and not folder.living_owners():
            count = len(folder.processes())
            if not folder.end_unless_owned():
                continue
            lines.append(f"{folder.path.name}: ended {count} processes that had no notebook any more")
    return lines
