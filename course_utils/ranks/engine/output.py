"""What a rank prints: kept, cut after this many lines, and the rest written to a file that is named."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_LINES = 1_000


class Printed(io.TextIOBase):
    """A stream that keeps the first `MAX_LINES` lines in memory and sends the rest to `overflow`."""

    def __init__(self, overflow: Path) -> None:
        self._kept: list[str] = []
        self._lines = 0
        self._overflow = overflow
        self._file: io.TextIOWrapper | None = None

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._file is None:
            room = MAX_LINES - self._lines
            lines = text.count("\n")
            if lines < room:
                self._kept.append(text)
                self._lines += lines
                return len(text)
            pieces = text.split("\n")
            self._kept.append("\n".join(pieces[:room]) + "\n")
            self._lines = MAX_LINES
            self._file = self._overflow.open("w")
            self._file.write("\n".join(pieces[room:]))
        else:
            self._file.write(text)
        return len(text)

    def text(self) -> str:
        """What was kept, with a last line that says where the rest is."""
        kept = "".join(self._kept)
        if self._file is None:
            return kept
        self._file.close()
        return f"{kept}… cut after {MAX_LINES:,} lines; the rest is in {self._overflow}\n"


@contextmanager
def captured(overflow: Path) -> Iterator[Printed]:
    """Take what is printed inside, standard error included."""
    printed = Printed(overflow)
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        yield printed
    finally:
        sys.stdout, sys.stderr = streams
