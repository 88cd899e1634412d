"""Fetch a file once, whole or not at all, and without making anybody wait for a network that is not there.

The package `pooch` fetches and checks a file as well, but it would let all ranks that ask at once fetch it, each for
itself, and would ask a missing network again at each call.
"""

import contextlib
import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.file_lock import hold

CONNECT_SECONDS = 5.0
_PIECE = 1 << 20
_unreachable: set[str] = set()  # asked once a process: a missing network is not asked for again


def data_folder() -> Path:
    """Where data sets lie: $COURSE_DATA, or the folder `data` of the course."""
    return settings.DATA.value()


def fetch(url: str, file: Path, md5: str) -> None:
    """Bring `url` to `file`, unless a file with that sum is there. Several processes may ask at once; one fetches.

    Args:
        md5: the sum that the file must have, in hexadecimal; another one is rejected.

    Raises:
        CourseError: the network or the folder cannot be used, or what came is not the file.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _alone(file.parent):
            if not (file.exists() and _sum_of(file) == md5):
                _download(url, file, md5)
    except urllib.error.HTTPError as error:
        raise CourseError(f"{url} answers {error.code}.") from None
    except OSError as error:
        _unreachable.add(url)
        raise CourseError(f"{url} did not reach {file.parent}: {getattr(error, 'reason', None) or error}.") from None


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time into this folder."""
    with open(folder / ".lock", "w") as lock:
        hold(lock, settings.DATA.name)
        yield


def _download(url: str, file: Path, md5: str) -> None:
    if settings.OFFLINE.value() or url in _unreachable:
        raise OSError("the network is not used")
    scratch = file.with_name(f"{file.name}.part")
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as source, open(scratch, "wb") as target:
            print(f"Fetching {file.name} into {file.parent} …")
            while piece := source.read(_PIECE):
                target.write(piece)
        if (got := _sum_of(scratch)) != md5:
            raise CourseError(f"{url} is not the file it should be: its MD5 sum is {got}, expected {md5}.")
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def _sum_of(file: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(file, "rb") as source:
        while piece := source.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
