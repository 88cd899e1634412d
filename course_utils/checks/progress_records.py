"""What a learner has done, kept across notebooks and kernels: lines of JSON, only ever appended.

Each session (kernel) writes its own file under $COURSE_HOME, or ~/.local/share/course, so that two notebooks open at
once never write into one file. A full disk or a home that cannot be written costs one warning, never the exercise;
what could not be written is kept in memory and written as soon as it can be.

Every record holds `schema`, the version of this form; `order`, a number that grows from record to record, which tells
earlier from later where a clock has jumped; and `time`. A reader takes from a record what it knows and leaves the rest,
so that older and newer versions of the course can share a folder. Schema 1 had neither `schema` nor `order`.
"""

import datetime
import json
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.home import course_home

SCHEMA = 2
_HIGHEST_ORDER = 10**12  # what is above it was not counted by us


class _AnotherUsersError(OSError):
    """The file belongs to somebody else."""


@dataclass(frozen=True)
class Kept:
    """All that could be read.

    Attributes:
        records: the earlier ones first.
        trouble: why no file can be read, in words; "" where some can.
        unreadable, foreign: how many files cannot be read, and how many are another user's.
    """

    records: list[dict[str, Any]]
    trouble: str = ""
    unreadable: int = 0
    foreign: int = 0

    @property
    def notes(self) -> list[str]:
        """What could not be read and why, a plain line each."""
        notes = [f"Your progress cannot be read here ({self.trouble})."] if self.trouble else []
        if number := self.unreadable:
            notes.append(f"{_files_of_progress(number)} cannot be read and {_is(number)} not in this table.")
        if number := self.foreign:
            notes.append(f"{_files_of_progress(number)} {_is(number)} another user's and not in this table.")
        return notes


class Session:
    """The file of this session; made when the first line is written."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._owner = (0, "")
        self._warned = False
        self._order = 0
        self._waiting: deque[dict[str, Any]] = deque()  # not on the disk yet

    def write(self, **record: Any) -> None:
        """Append one record and see it to the disk; warn once where that is not possible.

        Under nbgrader nothing is written: it runs learners' notebooks in their teacher's account.
        """
        if os.environ.get("NBGRADER_EXECUTION"):
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        page = {"page": here} if (here := page_of_kernel()) else {}
        self._order = max(self._order, highest_order() if self._path is None else 0) + 1
        self._waiting.append({"schema": SCHEMA, "order": self._order, "time": now, **page, **record})
        try:
            while self._waiting:
                next_one = self._waiting.popleft()
                try:
                    self._append(next_one)
                except (OSError, RuntimeError):
                    self._waiting.appendleft(next_one)
                    raise
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
            if not self._warned:
                self._warned = True
                reason = getattr(error, "strerror", None) or str(error)
                print(f"Your progress cannot be kept here ({reason}). Everything else works as usual.")

    def waiting(self) -> list[dict[str, Any]]:
        """The records that are not on the disk yet."""
        return list(self._waiting)

    def _append(self, record: dict[str, Any]) -> None:
        text = json.dumps(record, ensure_ascii=False, default=str)
        line = text.encode(errors="backslashreplace") + b"\n"  # half a character, which some strings hold
        handle = os.open(self._file(), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":  # a full disk cut the line before this one
                line = b"\n" + line
            while line:
                line = line[os.write(handle, line) :]
            os.fsync(handle)
        finally:
            os.close(handle)

    def _file(self) -> Path:
        """This session's file; another one after a fork and where $COURSE_HOME has changed."""
        folder = course_home() / "progress"
        if self._path is None or self._owner != (os.getpid(), str(folder)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
            self._path = folder / f"{now}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
            self._owner = (os.getpid(), str(folder))
        return self._path


def page_of_kernel() -> str | None:
    """The stem of the notebook that this kernel was started for, where the server says so."""
    return notebook_of_kernel().stem or None


def notebook_of_kernel() -> Path:
    """The notebook that this kernel was started for; an empty path where the server does not say so."""
    return Path(os.environ.get("JPY_SESSION_NAME", ""))


def read_all() -> Iterator[dict[str, Any]]:
    """Every record of every session, the earlier ones first; lines that cannot be read are passed over."""
    yield from read().records


def read() -> Kept:
    """Every record of every session, and what could not be read.

    Files of other users are not believed: whoever can write into the folder could claim what they like. (For root,
    as in a container, all files are root's own.)
    """
    records: list[dict[str, Any]] = []
    trouble, unreadable, foreign = "", 0, 0
    try:
        paths = _files()
    except (OSError, RuntimeError) as error:
        paths, trouble = [], str(getattr(error, "strerror", None) or error)
    for path in paths:
        try:
            lines = _lines(path)
        except _AnotherUsersError:
            foreign += 1
        except OSError:
            unreadable += 1
        else:
            records += filter(None, map(_record, lines))
    records += SESSION.waiting()
    records.sort(key=lambda record: (order_of(record), _time_of(record)))
    return Kept(records, trouble, unreadable, foreign)


def highest_order() -> int:
    """The order of the latest record there is; 0 without one."""
    return max(map(order_of, read_all()), default=0)


def order_of(record: dict[str, Any]) -> int:
    """The record's number in the order of records; 0 for those of schema 1 and for what is no such number."""
    order = record.get("order")
    return order if type(order) is int and 0 < order <= _HIGHEST_ORDER else 0


def _time_of(record: dict[str, Any]) -> str:
    """The time as it was written, for records of the same order; those of schema 1 stay as they stand."""
    return str(record.get("time", "")) if order_of(record) else ""


def _files() -> list[Path]:
    """The sessions' files, in the order of their names."""
    try:
        with os.scandir(course_home() / "progress") as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.endswith(".jsonl"))
    except FileNotFoundError:
        return []


def _lines(path: Path) -> list[bytes]:
    """The lines of a file; none where it is a folder or a pipe.

    Raises:
        OSError: it cannot be read; `_AnotherUsersError` where it is another user's.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not wait for a writer
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return []
        if os.geteuid() not in (0, found.st_uid):
            raise _AnotherUsersError
        with open(handle, "rb", closefd=False) as file:
            return file.read().splitlines()
    finally:
        os.close(handle)


def _record(line: bytes) -> dict[str, Any] | None:
    """The record that a line holds, or None: a torn one, or rubbish."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _files_of_progress(number: int) -> str:
    return "A file of your progress" if number == 1 else f"{number} files of your progress"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


SESSION = Session()
"""The session of this process."""
