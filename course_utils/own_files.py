"""Files that the course writes where a learner or teacher says, what is there already, and whether there is room."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from course_utils.errors import CourseError

_BEGINNING = 500
"""In so many letters of a file stands the mark of what it is."""


_TRIAL_BYTES = 1 << 16


@contextlib.contextmanager
def trial_file(folder: Path) -> Iterator[IO[bytes]]:
    """A file of some size in a folder, which is made if it is missing: whoever gets it can write there.

    Raises:
        OSError: nothing can be written there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_TRIAL_BYTES))
        file.flush()
        yield file


@contextlib.contextmanager
def whole_file(file: Path) -> Iterator[IO[bytes]]:
    """A file to write into, of which a reader finds the old content or the new one, and never a half.

    It is written beside its place, forced onto the disk, and then renamed: POSIX lets no one see a rename half done.
    A crash while writing leaves the old file. Only one process may write it.
    """
    scratch = file.with_suffix(".new")
    with scratch.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(file)


def replace_own(path: Path, text: str, mark: str, other: str, advice: str = "Choose a different file.") -> None:
    """Write a file, in the place of an older one of its kind, and of no other.

    Args:
        mark: stands near the beginning of each file of this kind.
        other: what to say of a file without it, as in "is not a report".
        advice: what to do if the file cannot be written.

    Raises:
        CourseError: there is another file of that name, or it cannot be written.
    """
    try:
        if path.exists() and mark not in _beginning(path):
            raise CourseError(f"{path} exists already and {other}. {advice}")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{path} cannot be written ({error.strerror}). {advice}") from None


def _beginning(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_BEGINNING)
