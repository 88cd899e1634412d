"""The table of marks: who got what, for which exercise, and why."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_utils.teacher.grading import Mark, printable
from course_utils.teacher.grading_process import GradingProcess
from course_utils.teacher.submission_files import names_of

BOXED, TRUSTED = "in a box", "without a box: --trusted"


def grade_each(notebooks: Sequence[Path], ranks: int = 4, boxed: bool = True) -> Iterator[list[Mark]]:
    """Mark every exercise of the lessons that a notebook answers, one notebook after the other.

    Args:
        notebooks: the submissions; each gets fresh ranks and fresh numbers.
        ranks: how many each is run on.
        boxed: False where those who wrote them are trusted.

    Raises:
        CourseError: contained ranks do not start on this machine; that is not a submission's fault.
    """
    with GradingProcess(ranks, boxed) as judging:
        for notebook, name in zip(notebooks, names_of(notebooks)):
            yield list(judging.marks_of(notebook, name))


def scratch_of(file: Path) -> Path:
    """The file beside the table of marks that is written first."""
    return file.with_name(f".{file.name}.new")


def write_marks(marks: list[Mark], file: Path) -> None:
    """Write the marks as a table that spreadsheets open, in one step: what stood in the file before is gone."""
    scratch = scratch_of(file)
    with scratch.open(
        "w", newline="", encoding="utf-8-sig"
    ) as table:  # without that mark Excel takes ✓ for three letters
        writer = csv.writer(table)
        writer.writerow(["submission", "exercise", "mark", "verdict", "run"])
        for row in marks:
            writer.writerow([_cell(row.submission), row.exercise, row.mark, _cell(row.verdict), how_it_ran(row)])
    os.replace(scratch, file)


def how_it_ran(mark: Mark) -> str:
    """What the answer was kept in; what that promises, `docs/grading.md` says."""
    return BOXED if mark.boxed else TRUSTED


def _cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    text = printable(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
