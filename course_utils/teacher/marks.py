"""The table of marks: who got what, for which exercise, and why; and how it is read back, to go on with it."""

import csv
import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from course_utils.checks.verdict import NAMES, Result
from course_utils.errors import CourseError
from course_utils.teacher.grading import Mark, printable
from course_utils.teacher.grading_process import GradingProcess
from course_utils.teacher.submission_files import names_of

BOXED, TRUSTED = "in a box", "without a box: --trusted"
COLUMNS = (
    *("submission", "exercise", "mark", "verdict", "run"),
    *("learner", "result", "late", "handed in", "counts", "question", "id", "file"),
)
_YES = {True: "yes", False: "no", None: ""}
_RESULTS = {name: result for result, name in NAMES.items()}
_FORMULAS = ("=", "+", "-", "@")


@dataclass(frozen=True)
class MarkLine:
    """A line of the table.

    Attributes:
        mark: a submission's for one exercise.
        learner: whose submission it is.
        late: whether it was handed in late; None if nothing tells.
        handed_in: when, as a date and a time; "" if nothing tells.
        counts: False if a newer submission of the same learner answers this exercise, too.
        id: the learner's on the platform that the file is from; "" without one.
        file: a digest of what was handed in, by which the same file is known again.
    """

    mark: Mark
    learner: str = ""
    late: bool | None = None
    handed_in: str = ""
    counts: bool = True
    id: str = ""
    file: str = ""


def grade_each(
    notebooks: Sequence[Path],
    ranks: int = 4,
    boxed: bool = True,
    names: Sequence[str] | None = None,
    unpacked: Path | None = None,
) -> Iterator[list[Mark]]:
    """Mark every exercise of the lessons that a notebook answers, one notebook after the other.

    Args:
        notebooks: the submissions; each gets fresh ranks and fresh numbers.
        ranks: how many each is run on.
        boxed: False where those who wrote them are trusted.
        names: what the marks call them; without it, their paths.
        unpacked: a folder that goes, too, if the grader is killed.

    Raises:
        CourseError: contained ranks do not start on this machine; that is not a submission's fault.
    """
    with GradingProcess(ranks, boxed, unpacked) as judging:
        for notebook, name in zip(notebooks, names or names_of(notebooks)):
            yield list(judging.marks_of(notebook, name))


def with_the_newest(lines: Sequence[MarkLine]) -> list[MarkLine]:
    """Let the last line of each learner and exercise count, and no other.

    A file without answers counts if the learner has handed in nothing else.
    """
    has_answers = {line.learner for line in lines if line.mark.exercise}
    newest = {(line.learner, line.mark.exercise): number for number, line in enumerate(lines)}
    return [
        replace(
            line,
            counts=newest[line.learner, line.mark.exercise] == number
            and (bool(line.mark.exercise) or line.learner not in has_answers),
        )
        for number, line in enumerate(lines)
    ]


def scratch_of(file: Path) -> Path:
    """The file beside the table of marks that is written first."""
    return file.with_name(f".{file.name}.new")


def write_marks(lines: Sequence[MarkLine], file: Path) -> None:
    """Write the marks as a table that spreadsheets open, in one step: what stood in the file before is gone."""
    write_table(file, [list(COLUMNS), *map(_cells, lines)])


def write_table(file: Path, rows: Sequence[Sequence[object]], mark: bool = True) -> None:
    """Write a table in one step.

    Args:
        file: what stood in it before is gone.
        rows: the first one names the columns.
        mark: begin with the mark without which Excel takes ✓ for three letters.
    """
    scratch = scratch_of(file)
    with scratch.open("w", newline="", encoding="utf-8-sig" if mark else "utf-8") as table:
        csv.writer(table).writerows([[cell(str(value)) for value in row] for row in rows])
    os.replace(scratch, file)


def _cells(line: MarkLine) -> list[object]:
    mark = line.mark
    result = NAMES[mark.result] if mark.exercise else ""
    first = [mark.submission, mark.exercise, mark.mark, mark.verdict, how_it_ran(mark)]
    more = [line.learner, result, _YES[line.late], line.handed_in, _YES[line.counts], mark.question, line.id, line.file]
    return first + more


def read_marks(file: Path) -> list[MarkLine]:
    """Read a table of marks that was written before.

    Raises:
        CourseError: it cannot be read, or is another table.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as table:
            reader = csv.DictReader(table)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise CourseError(f"{file} is no table of marks that `course grade` can go on with.")
            return [_line({name: _bare(row[name] or "") for name in COLUMNS}) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{file} cannot be read ({error}).") from None


def _line(row: dict[str, str]) -> MarkLine:
    yes = {word: value for value, word in _YES.items()}
    result = _RESULTS.get(row["result"], Result.RIGHT if row["mark"] == "1" else Result.WRONG)
    boxed = row["run"] != TRUSTED
    mark = Mark(row["submission"], row["exercise"], result, row["verdict"], row["question"], boxed)
    late, counts = yes.get(row["late"]), yes.get(row["counts"]) is not False
    return MarkLine(mark, row["learner"], late, row["handed in"], counts, row["id"], row["file"])


def how_it_ran(mark: Mark) -> str:
    """What the answer was kept in; what that promises, `docs/grading.md` says."""
    return BOXED if mark.boxed else TRUSTED


def time_text(seconds: float | None) -> str:
    """A date and a time, as spreadsheets read it; "" for none."""
    return "" if seconds is None else datetime.datetime.fromtimestamp(seconds).isoformat(" ", "minutes")


def cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    text = printable(text)
    return f"'{text}" if text.startswith(_FORMULAS) and len(text) > 1 else text


def _bare(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULAS) else text
