"""Whose turn it is: several notebooks may use one set of ranks, and every call needs a communicator that is clean."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from typing import IO

from course_utils.errors import CourseError
from course_utils.ranks.processes.ranks_folder import RanksFolder

_FIRST = 1  # communicator 0 is the one that all others are made from


class Turn:
    """The ranks, held for one call.

    Attributes:
        communicator: the number of the communicator to use. It is given up unless `clean` is called: what is still
            on its way on it must not reach a later call, whichever notebook makes that, and whatever ended this one.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        text = file.read().strip()
        self.communicator = int(text) if text.isdigit() else _FIRST
        self._keep(self.communicator + 1)

    def clean(self) -> None:
        """Every message of the call was received: the next one may use the same communicator."""
        self._keep(self.communicator)

    def _keep(self, number: int) -> None:
        self._file.seek(0)
        self._file.write(f"{number}\n")
        self._file.truncate()
        self._file.flush()


@contextlib.contextmanager
def turn(folder: RanksFolder) -> Iterator[Turn]:
    """Hold the ranks for one call; another notebook that uses the same ranks waits for its turn.

    Raises:
        CourseError: the user has stopped the waiting.
    """
    path = folder.path / "turn"
    path.touch(mode=0o600)
    with path.open("r+") as file:
        try:
            _wait_for(file)
        except KeyboardInterrupt:
            raise CourseError("Stopped by you, while another notebook had its turn. Nothing was run.") from None
        yield Turn(file)


def _wait_for(file: IO[str]) -> None:
    if _locked(file):
        return
    print("The ranks are busy with another notebook; waiting for them.")
    while not _locked(file):
        time.sleep(0.1)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
