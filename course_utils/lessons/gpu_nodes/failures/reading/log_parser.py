"""From the text of a log to its lines: who wrote each, where, and when."""

import re
from collections.abc import Iterable, Iterator, Sequence

from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.clocks import DAY, stamp_of, times_of
from course_utils.lessons.gpu_nodes.failures.reading.identities import NOBODY, Owner, identities_of
from course_utils.lessons.gpu_nodes.failures.reading.logged_bars import BAR
from course_utils.lessons.gpu_nodes.failures.reading.writers import NO_MARK, WriterMark, mark_of, prefix_style

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|[\x00\x07\x08]")
"""Colours, titles of windows, bells and backspaces; and the zeros of a file that was cut while it was written."""
_SECOND_WRITER = re.compile(
    r"(?<=[^\s:\])])(?=\[(?:rank|default)\d+\]:)"
    r"|(?<=\S)(?=Traceback \(most recent call last\):|(?:srun|slurmstepd[\w.-]*): error: )"
)
"""Where the line of a different process begins: torch's marks, tracebacks and Slurm's errors begin a line."""
_SIGNS_OF_PIECES = ("[rank", "[default", "Traceback (", "%|", "it [", "srun: error", "slurmstepd")
"""Without any of these behind its first letter, a line is of one piece."""


def lines_of(text: str, file: str = "", owner: Owner = NOBODY, near: float | None = None) -> list[Line]:
    """The lines of a log, in its order.

    A line that a progress bar has rewritten, or that two processes have written on, becomes several, which share their
    number. States of a bar that were overwritten are left out, and so are empty lines.

    Args:
        text: what the file holds.
        file: its name.
        owner: who wrote the lines without a mark.
        near: a time near those of the log, for clocks without a year or a date.
    """
    return assembled(numbered_pieces(enumerate(text.split("\n"), 1)), file, owner, near)


def numbered_pieces(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the pieces of lines, each with the number of its line."""
    for number, line in lines:
        if line.isprintable() and not any(line.find(sign, 1) > 0 for sign in _SIGNS_OF_PIECES):
            if line and not line.isspace():
                yield number, line
        else:
            yield from ((number, piece) for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    states = [state for state in _ESCAPES.sub("", line).split("\r") if state.strip()]
    for index, state in enumerate(states):
        for part in _SECOND_WRITER.split(state):
            bars = list(BAR.finditer(part))
            end = bars[-1].end() if bars else 0
            behind = part[end:].strip()
            if not bars or not behind:
                if part.strip() and not (bars and index < len(states) - 1):
                    yield part
            else:
                if index == len(states) - 1:
                    yield part[:end]
                yield part[end:]


def assembled(pieces: Iterable[tuple[int, str]], file: str, owner: Owner, near: float | None) -> list[Line]:
    """The pieces as lines with rank, node and time."""
    numbers, texts = [], []
    for number, text in pieces:
        numbers.append(number)
        texts.append(text)
    style = prefix_style(texts)
    marks = [mark_of(text, style) for text in texts]
    ranks, nodes = identities_of(texts, marks, owner)
    stamps = [stamp_of(text, mark.end) for text, mark in zip(texts, marks, strict=True)]
    times = _carried(times_of(stamps, near), marks, ranks)
    return [
        Line(text, number, file, rank, node, time)
        for text, number, rank, node, time in zip(texts, numbers, ranks, nodes, times, strict=True)
    ]


def _carried(
    times: Sequence[float | None], marks: Sequence[WriterMark], ranks: Sequence[int | None]
) -> Iterator[float | None]:
    """Yield the times of lines. One without a clock has that of the line before it by the same writer.

    The clock of a rank doesn't go back: if it does, somebody set it, and the order of the lines is the truth.
    """
    latest: float | None = None
    latest_of: dict[object, float] = {}
    for time, mark, rank in zip(times, marks, ranks, strict=True):
        writer: object = rank
        if rank is None and mark is not NO_MARK:
            writer = (mark.task, mark.node, mark.process)
        if time is None:
            yield latest_of.get(writer, latest) if writer is not None else latest
            continue
        before = latest_of.get(writer)
        if rank is not None and before is not None and time < before < time + DAY:
            time = before
        latest_of[writer] = latest = time
        yield time
