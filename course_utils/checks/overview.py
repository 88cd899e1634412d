"""The table of all lessons and exercises, as text and for a notebook: what is done, what is next."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from course_utils.checks.lesson_progress import LONGEST_PAUSE, LessonRow, standing
from course_utils.checks.prediction_scores import comparisons
from course_utils.checks.progress_file import save_progress
from course_utils.checks.progress_records import Kept, read
from course_utils.checks.verdict import Result
from course_utils.templates import render
from course_utils.words import count

DOTS = {Result.RIGHT: "●", Result.WRONG: "◐", Result.NOT_BEGUN: "○"}
WORDS = {Result.RIGHT: "solved", Result.WRONG: "tried", Result.NOT_BEGUN: "not begun"}


@dataclass(frozen=True)
class Overview:
    """All lessons in order. Prints as text; a notebook shows it as a table."""

    rows: tuple[LessonRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def next(self) -> tuple[LessonRow, str] | None:
        """The first exercise of a written lesson that is not solved yet."""
        for row in self.rows:
            for name, mark in row.marks:
                if row.written and mark != Result.RIGHT:
                    return row, name
        return None

    def what_is_next(self) -> tuple[str, str, int]:
        """What to do next, the file it is in, and its minutes: a lesson that is not begun, else an exercise."""
        if self.next is None:
            return "", "", 0
        row, name = self.next
        if row.begun or row.done:
            takes = dict(zip((name for name, _ in row.marks), row.takes, strict=False))
            return name, f"exercises/{row.stem}.ipynb", takes.get(name, 0)
        return f"lesson {row.number}, {row.title}", f"notebooks/{row.stem}.ipynb", row.planned

    def summary(self) -> str:
        """Exercises, predictions and minutes of all lessons together."""
        written = [row for row in self.rows if row.written]
        done, exercises = sum(row.done for row in written), sum(len(row.marks) for row in written)
        hit, compared = sum(row.hit for row in written), sum(row.compared for row in written)
        spent = sum(row.spent for row in written)
        parts_of_it = [f"{done} of {exercises} exercises solved"]
        parts_of_it += [f"{hit} of {compared} predictions hit"] if compared else []
        parts_of_it += [f"about {count(round(spent), 'minute')} of work"] if spent >= 1 else []
        return ", ".join(parts_of_it) + "."

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            if not row.written:
                lines.append(f"{row.number:>2}  {row.title}  (not written yet)")
                continue
            lines.append(f"{row.number:>2}  {row.title}  {predictions(row)}, {minutes(row)}")
            lines += [f"      {DOTS[mark]} {name}" for name, mark in row.marks]
        key = "  ".join(f"{DOTS[mark]} {WORDS[mark]}" for mark in DOTS)
        what, where, takes = self.what_is_next()
        then = f"Next: {what}, in {where} ({count(takes, 'minute')})" if what else "That is all of them."
        return "\n".join([*lines, "", key, f"{self.summary()} {then}", *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook; it reads in a light and in a dark theme, and in a narrow window."""
        what, where, takes = self.what_is_next()
        return render(
            "course_utils/checks/progress.html",
            summary=self.summary(),
            next={"what": what, "file": where, "minutes": count(takes, "minute")},
            lessons=self.rows,
            rows=[[row] * (4 if row.written else 1) for row in self.rows],
            named=_named,
            dots=DOTS,
            words=WORDS,
            pause=LONGEST_PAUSE // 60,
            notes=self.notes,
        )


def predictions(row: LessonRow) -> str:
    """`2 of 3 predictions hit`, or how many there are."""
    if row.compared:
        return f"{row.hit} of {row.compared} predictions hit"
    return f"{row.asked} predictions" if row.asked != 1 else "1 prediction"


def minutes(row: LessonRow) -> str:
    """`35 of 50 minutes`: spent, and planned."""
    return f"{row.spent:.0f} of {count(row.planned, 'minute')}"


def _named(row: LessonRow) -> list[tuple[Result, str]]:
    """(mark, name, what it is about and how it stands) for each exercise."""
    return [
        (mark, f"{name}{f' ({title})' if title else ''}: {WORDS[mark]}")
        for (name, mark), title in zip_longest(row.marks, row.titles[: len(row.marks)])
    ]


def overview(records: Iterable[dict[str, Any]] | None = None) -> Overview:
    """The state of all exercises; one that was once right stays solved."""
    return _overview_of(read() if records is None else Kept(list(records)))


def _overview_of(kept: Kept) -> Overview:
    return Overview(standing(kept.records), tuple(kept.notes))


def progress(file: str | Path | None = None) -> Overview:
    """The table of all lessons and exercises, over all notebooks and sessions: what is done, what is next.

    Args:
        file: such as "progress.json", to send to a teacher: which exercises you have solved or tried, which predictions
            were right, and how many minutes you have worked, but none of your answers. None: the table is only shown.

    Raises:
        CourseError: the file cannot be written, or is something else.
    """
    kept = read()
    table = _overview_of(kept)
    if file is not None:
        path = Path(file).expanduser()
        save_progress(table.rows, comparisons(kept.records), path)
        print(f"Your progress is in {path}. It holds results and minutes, but none of your answers.")
    return table
