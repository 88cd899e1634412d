"""Files that the course writes where a learner or teacher says, and what is there already."""

from pathlib import Path

from course_utils.errors import CourseError

_BEGINNING = 500
"""In so many letters of a file stands the mark of what it is."""


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
