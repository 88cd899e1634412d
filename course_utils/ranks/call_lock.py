"""Whose turn it is: several notebooks may use one set of ranks, and every call needs a communicator that is clean."""

import contextlib
import time
from collections.abc import Iterator
from typing import IO

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.file_lock import hold
from course_utils.ranks.processes.ranks_folder import RanksFolder, full_disk_in_words, shared_root

_FIRST = 1  # communicator 0 is the one that all others are made from


class CallLock:
    """The ranks, held for one call.

    Attributes:
        communicator: the number of the communicator to use. It is given up unless `clean` is called: what is still
            on its way on it must not reach a later call, whichever notebook makes that, and whatever ended this one.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """`file`: without a buffer, in which what a full disk could not take would stay."""
        self._file = file
        text = file.read().strip()
        self.communicator = int(text) if text.isdigit() else _FIRST
        self._keep(self.communicator + 1)

    def clean(self) -> None:
        """Every message of the call was received: the next one may use the same communicator."""
        self._keep(self.communicator)

    def _keep(self, number: int) -> None:
        self._file.seek(0)
        self._file.write(b"%d\n" % number)
        self._file.truncate()


@contextlib.contextmanager
def call_lock(folder: RanksFolder) -> Iterator[CallLock]:
    """Hold the ranks for one call; another notebook that uses the same ranks waits for its turn.

    Raises:
        CourseError: the user has stopped the waiting, or the disk is full or has no locks.
    """
    path = folder.path / "call-lock"
    with full_disk_in_words(folder.path.parent):
        path.touch(mode=0o600)
    with path.open("r+b", buffering=0) as file:
        try:
            _take(file, (settings.SHARED if folder.path.parent == shared_root() else settings.RUNTIME).name)
        except KeyboardInterrupt:
            raise CourseError(
                "You stopped this call while it waited for a call from another notebook. Nothing was run."
            ) from None
        with full_disk_in_words(folder.path.parent):
            lock = CallLock(file)
        yield lock


def _take(file: IO[bytes], variable: str) -> None:
    if hold(file, variable, wait=False):
        return
    print("The ranks are busy with a call from another notebook. Waiting for it to end.")
    while not hold(file, variable, wait=False):
        time.sleep(0.1)
