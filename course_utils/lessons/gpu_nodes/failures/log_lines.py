"""From the text of a log to its lines: who wrote each, where, and when."""

import re

from course_utils.lessons.gpu_nodes.failures.clocks import time_of
from course_utils.lessons.gpu_nodes.failures.log_line import Line

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_BAR = re.compile(r"\d+%\|")
_MARK = re.compile(r"\[(?:default|rank ?=?|Rank )(\d+)\]:?")
_RANK = re.compile(
    r"\[(?:PG [^\]]*)?(?:default|[rR]ank[ =]?)(\d+)\]|^\[\d+,(\d+)\]<std\w+>:|^ *(\d+): |^[rR]ank (\d+)\b"
)
_NODE = re.compile(r"srun: error: ([\w.-]+): task|slurmstepd-([\w.-]+):|^([\w.-]+):\d+:\d+ \[\d+\]|^\[([\w.-]+):\d+\] ")


def lines_of(text: str, file: str = "") -> list[Line]:
    """The lines of a log, in its order; the pieces of a line that a progress bar rewrote share their number."""
    lines: list[Line] = []
    times: dict[int | None, float] = {}
    latest: float | None = None
    for number, whole in enumerate(text.split("\n"), 1):
        for piece in _pieces(_COLOURS.sub("", whole)):
            rank = next(
                (int(group) for found in [_RANK.search(piece)] if found for group in found.groups() if group), None
            )
            node = next((group for found in [_NODE.search(piece)] if found for group in found.groups() if group), "")
            time = time_of(piece, latest)
            if time is None:
                time = times.get(rank, latest)
            else:
                times[rank] = latest = time
            lines.append(Line(piece, number, file, rank, node, time))
    return lines


def _pieces(text: str) -> list[str]:
    pieces = [piece for piece in text.split("\r") if piece.strip()]
    return [
        part
        for index, piece in enumerate(pieces)
        for part in re.split(r"(?<=\S)(?=\[rank\d+\]: )", piece)
        if part.strip() and (index == len(pieces) - 1 or not _BAR.search(part))
    ]
