"""Progress bars in a log: how far they came, and which of them tell of the end of a run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.lessons.gpu_nodes.failures.log_line import Line

BAR = re.compile(r"\d+%\|[^|]*\|[^\[\n]*(?:\[[^\]]*\])?|\d+it \[[^\]]*\]")
"""A progress bar of tqdm, up to the end of its numbers."""
_COUNTS = re.compile(r"%\|[^|]*\| *([\d.]+[kMGT]?)/([\d.]+[kMGT]?)")
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_EPOCH = re.compile(r"\bepochs?\b|\d+ */ *\d+", re.IGNORECASE)
"""The bar of one of several epochs, which is full many times before the end."""
_NOT_TRAINING = re.compile(
    r"load|download|fetch|map\b|filter|tokeniz|split|shard|check|cach|extract|read|writ|sav|uploa|\bval|eval|test|sanity"
    r"|prepar|process|captur|warm|compil|generat",
    re.IGNORECASE,
)
"""What a program also draws bars of, before and between its steps."""


@dataclass(frozen=True)
class LoggedBar:
    """The state of a progress bar.

    Attributes:
        label: what is written before it.
        done: how many steps are done, of `total`.
        rank: who drew it, if that is known.
    """

    label: str
    done: float
    total: float
    rank: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether all steps are done."""
        return self.done >= self.total

    @property
    def ends_a_run(self) -> bool:
        """Whether it is full, and not one of many that a run fills."""
        return self.is_full and not _EPOCH.search(self.label) and not _NOT_TRAINING.search(self.label)


def bar_in(line: Line) -> LoggedBar | None:
    """The last progress bar in a line."""
    if "%|" not in line.text:
        return None
    label, before = "", 0
    found = None
    for bar in BAR.finditer(line.text):
        if counts := _COUNTS.search(bar[0]):
            label, found = line.text[before : bar.start()].strip(" :"), counts
        before = bar.end()
    return LoggedBar(label, _number(found[1]), _number(found[2]), line.rank) if found else None


def _number(text: str) -> float:
    try:
        return float(text.rstrip("".join(_UNITS))) * _UNITS.get(text[-1], 1)
    except ValueError:
        return 0.0


def last_bars(lines: Sequence[Line]) -> list[LoggedBar]:
    """The last progress bar of each writer."""
    return list({(line.file, line.rank): bar for line in lines if (bar := bar_in(line))}.values())


def last_states(lines: Sequence[Line]) -> list[LoggedBar]:
    """The last state of each progress bar; a writer may draw several at once."""
    return list({(line.file, line.rank, bar.total): bar for line in lines if (bar := bar_in(line))}.values())
