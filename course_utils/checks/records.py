"""What a learner has done, kept across notebooks and kernels: lines of JSON, only ever appended.

Each session (kernel) writes its own file under $COURSE_HOME, or ~/.local/share/course, so that two notebooks open at
once never write into one file. A full disk or a home that cannot be written costs one warning, never the exercise.
"""

import datetime
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def course_home() -> Path:
    """The folder that the course keeps its notes in."""
    chosen = os.environ.get("COURSE_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".local" / "share" / "course"


class Session:
    """The file of this session; made when the first line is written."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._owner = (0, "")
        self._warned = False

    def write(self, **record: Any) -> None:
        """Append one record and see it to the disk; warn once where that is not possible."""
        try:
            self._append({"time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **record})
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
            if not self._warned:
                self._warned = True
                reason = getattr(error, "strerror", None) or str(error)
                print(f"Your progress cannot be kept here ({reason}). Everything else works as usual.")

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n"
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


def read_all() -> Iterator[dict[str, Any]]:
    """Every record of every session, oldest session first; lines that cannot be read are passed over."""
    try:
        paths = sorted((course_home() / "progress").glob("*.jsonl"))
    except (OSError, RuntimeError):
        return
    for path in paths:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                continue
            lines = path.read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


SESSION = Session()
