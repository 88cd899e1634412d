"""The table of all lessons and exercises: what is done, what is next."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from course_utils.checks.records import read_all
from course_utils.checks.verdict import FAILED, NOT_BEGUN, PASSED


@dataclass(frozen=True)
class Row:
    """One lesson: its exercises with the mark of each."""

    number: int
    stem: str
    title: str
    written: bool
    marks: tuple[tuple[str, str], ...]

    @property
    def done(self) -> int:
        """How many of the exercises are solved."""
        return sum(mark == PASSED for _, mark in self.marks)


@dataclass(frozen=True)
class Overview:
    """All lessons in order. Prints as text; a notebook shows it as a table."""

    rows: tuple[Row, ...]

    @property
    def next(self) -> tuple[Row, str] | None:
        """The first exercise of a written lesson that is not solved yet."""
        for row in self.rows:
            for name, mark in row.marks:
                if row.written and mark != PASSED:
                    return row, name
        return None

    def _summary(self) -> str:
        written = [row for row in self.rows if row.written]
        done, all_of_them = sum(row.done for row in written), sum(len(row.marks) for row in written)
        if self.next is None:
            return f"{done} of {all_of_them} exercises solved. That is all of them."
        row, name = self.next
        return f"{done} of {all_of_them} exercises solved. Next: {name}, in exercises/{row.stem}.ipynb"

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            lines.append(f"{row.number:>2}  {row.title}{'' if row.written else '  (not written yet)'}")
            if row.written:
                lines += [f"      {mark} {name}" for name, mark in row.marks]
        return "\n".join([*lines, "", self._summary()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook; text stays readable in a light and in a dark theme."""
        body = []
        for row in self.rows:
            marks = " &nbsp; ".join(
                f'<span style="white-space: nowrap">{mark} <code>{html.escape(name)}</code></span>'
                for name, mark in row.marks
            )
            cells = (str(row.number), html.escape(row.title), marks if row.written else "<i>not written yet</i>")
            body.append("<tr>" + "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) + "</tr>")
        head = "".join(f'<th style="text-align: left">{word}</th>' for word in ("", "Lesson", "Exercises"))
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            f"<p>{html.escape(self._summary())}</p>"
        )


def overview(records: Iterable[dict[str, Any]] | None = None) -> Overview:
    """The state of all exercises; one that was once right stays solved."""
    from course_utils.checks.registry import names_of
    from course_utils.syllabus import LESSONS

    marks: dict[str, str] = {}
    for record in read_all() if records is None else records:
        name, mark = record.get("exercise"), record.get("mark")
        if isinstance(name, str) and mark in (PASSED, FAILED, NOT_BEGUN) and marks.get(name) != PASSED:
            marks[name] = mark
    return Overview(
        tuple(
            Row(
                lesson.number,
                lesson.stem,
                lesson.title,
                lesson.written,
                tuple((name, marks.get(name, NOT_BEGUN)) for name in names_of(lesson)),
            )
            for lesson in LESSONS
        )
    )
