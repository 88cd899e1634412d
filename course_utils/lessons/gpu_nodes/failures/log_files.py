"""Find the files of a log, and read them."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.log_lines import lines_of


@dataclass(frozen=True)
class Logs:
    """What was read.

    Attributes:
        lines: of all files, one file after the other.
        files: those that were read, as the reader would type them.
        left_out: files of a folder that are no logs.
    """

    lines: list[Line]
    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def read_logs(paths: Iterable[Path | str]) -> Logs:
    """Read logs: files and folders, compressed or not.

    Raises:
        CourseError: there is nothing to read.
    """
    lines: list[Line] = []
    files: list[str] = []
    left_out: list[str] = []
    for path in map(Path, paths):
        found = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in found:
            try:
                content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            except (OSError, EOFError) as error:
                reason = getattr(error, "strerror", None) or "it is damaged"
                raise CourseError(
                    f"{file} cannot be read: {reason}. Give the file that holds what the launch printed."
                ) from None
            if path.is_dir() and b"\0" in content[:4096]:
                left_out.append(str(file))
            elif content.strip():
                files.append(str(file))
                lines += lines_of(content.decode(errors="replace"), str(file))
    if not lines:
        raise CourseError(
            f"{', '.join(map(str, paths))} is empty. Give the file that holds what the launch printed, "
            "standard error included."
        )
    return Logs(lines, tuple(files), tuple(left_out))
