"""Files that one process holds at a time, and what is said where a disk cannot do that: a home on NFS, for example.

The package `filelock` calls the same `flock`, but it asks every 50 ms whether a file is free, where here the kernel
wakes the process that waits; and the sentence about the disk, which is most of this module, would stay.
"""

import fcntl
from pathlib import Path
from typing import IO

from course_utils.errors import CourseError


def hold(file: IO, variable: str, wait: bool = True) -> bool:
    """Hold an open file until it is closed; False where somebody else holds it and the caller does not want to wait.

    Args:
        file: open for writing.
        variable: of the environment, which says in what folder such files lie.

    Raises:
        CourseError: the folder lies on a disk without locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise CourseError(
            f"The disk of {Path(file.name).parent} cannot lock files ({error.strerror}), as some that come over a "
            f"network. Set {variable} to a folder on a different disk."
        ) from None
    return True
