"""What a rank prints: kept, cut after many lines or characters, and the rest written to a file that is named."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course_utils.words import printable

MAX_LINES = 1_000
MAX_CHARACTERS = 1_000_000
"""A notebook with more in its cells is slow to open, and to save."""
LONGEST_FILE = 100_000_000
"""Characters; a loop that prints on forever does not fill the disk."""


class Printed(io.TextIOBase):
    """A stream that keeps the first lines, `MAX_LINES` or `MAX_CHARACTERS`, and sends the rest to `overflow`."""

    def __init__(self, overflow: Path) -> None:
        self._first_text: list[str] = []
        self._lines = self._characters = self._filed = 0
        self._overflow = overflow
        self._file: io.TextIOWrapper | None = None

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._file is not None:
            self._to_file(self._file, text)
            return len(text)
        room = min(_end_of_line(text, MAX_LINES - self._lines), MAX_CHARACTERS - self._characters)
        self._first_text.append(text[:room])
        self._lines += text.count("\n", 0, room)
        self._characters += len(text)
        if room < len(text):
            self._file = self._overflow.open("w", encoding="utf-8", errors="backslashreplace")
            self._to_file(self._file, text[room:])
        return len(text)

    def _to_file(self, file: io.TextIOWrapper, text: str) -> None:
        file.write(text[: max(0, LONGEST_FILE - self._filed)])
        self._filed += len(text)

    def text(self) -> str:
        """What was kept, with a last line that says where the rest is."""
        text = printable("".join(self._first_text))
        if self._file is None:
            return text
        self._file.close()
        text += "" if text.endswith("\n") else "\n"
        limit = f"{MAX_LINES:,} lines" if self._lines == MAX_LINES else f"{MAX_CHARACTERS:,} characters"
        more = "" if self._filed <= LONGEST_FILE else f", up to {LONGEST_FILE:,} characters of it"
        return f"{text}… cut after {limit}; the rest is in {self._overflow}{more}\n"


def _end_of_line(text: str, lines: int) -> int:
    """Where the n-th line of a text ends, its line break included; the text's length where it has fewer."""
    end = 0
    for _ in range(lines):
        found = text.find("\n", end)
        if found < 0:
            return len(text)
        end = found + 1
    return end


@contextmanager
def capture_prints(overflow: Path) -> Iterator[Printed]:
    """Take what is printed inside, standard error included."""
    printed = Printed(overflow)
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        yield printed
    finally:
        sys.stdout, sys.stderr = streams
