"""The table of all lessons and exercises, as text and for a notebook: what is done, what is next."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from course_utils.checks import grid
from course_utils.checks import panel as parts
from course_utils.checks.lesson_progress import LessonRow, standing
from course_utils.checks.progress_records import Kept, read
from course_utils.checks.verdict import Result
from course_utils.checks.working_time import LONGEST_PAUSE
from course_utils.words import count

DOTS = {Result.RIGHT: "●", Result.WRONG: "◐", Result.NOT_BEGUN: "○"}
WORDS = {Result.RIGHT: "solved", Result.WRONG: "tried", Result.NOT_BEGUN: "not begun"}
_WIDTHS = ("1 1 260px", "0 0 124px", "0 0 92px", "0 0 64px")
_GREEN = "color: color-mix(in srgb, currentColor 45%, #009E73)"  # darker on white, lighter on black


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
        names = ("Lesson", "Exercises", "Predictions", "Minutes")
        table = grid.table("Your progress, lesson by lesson", names, map(_cells, self.rows), _WIDTHS)
        key = " &nbsp; ".join(f'<span style="white-space: nowrap">{_dot(mark)} {WORDS[mark]}</span>' for mark in DOTS)
        pause = f"Minutes: spent, of those planned. Pauses of more than {LONGEST_PAUSE // 60} minutes are not counted."
        notes = "".join(parts.paragraph(note) for note in self.notes)
        return (
            '<div class="course-progress" style="max-width: 720px; padding-left: 4px; line-height: 1.5; '
            f'word-break: normal; white-space: normal">{self._html_next()}{table}'
            f'<div style="margin-top: 8px">{key}</div>{parts.paragraph(pause)}{notes}{_by_name(self.rows)}</div>'
        )

    def _html_next(self) -> str:
        what, where, takes = self.what_is_next()
        if not what:
            return f"<div>{parts.escape(self.summary())} <strong>That is all of them.</strong></div>"
        place = parts.escape(f"{where}, {count(takes, 'minute')}")
        linked = link(where, f"<strong>{parts.escape(what)}</strong>")
        return f"<div>{parts.escape(self.summary())}</div><div>Next: {linked} ({place})</div>"


def predictions(row: LessonRow) -> str:
    """`2 of 3 predictions hit`, or how many there are."""
    if row.compared:
        return f"{row.hit} of {row.compared} predictions hit"
    return f"{row.asked} predictions" if row.asked != 1 else "1 prediction"


def minutes(row: LessonRow) -> str:
    """`35 of 50 minutes`: spent, and planned."""
    return f"{row.spent:.0f} of {count(row.planned, 'minute')}"


def _cells(row: LessonRow) -> list[str]:
    """The cells of a lesson's row."""
    number = f'<span style="display: inline-block; min-width: 1.7em">{row.number}</span>'
    if not row.written:
        return [f'{number}{parts.escape(row.title)} <i style="white-space: nowrap">(not written yet)</i>']
    told = f"{row.hit} hit of {row.compared} compared; the lesson asks {row.asked}"
    hits = f"{row.hit} of {row.compared}" if row.compared else "–"
    return [
        number + link(f"notebooks/{row.stem}.ipynb", parts.escape(row.title)),
        "\N{THIN SPACE}".join(_dot(mark, name) for mark, name in _named(row)),
        f'<span title="{parts.attribute(told)}">{hits}</span>',
        f"{row.spent:.0f} of {row.planned}",
    ]


def _by_name(rows: Iterable[LessonRow]) -> str:
    """All exercises of written lessons by name, folded."""
    lines = []
    for row in rows:
        if row.written:
            names = "<br>".join(f"{_dot(mark)} {parts.escape(name)}" for mark, name in _named(row))
            lines.append(f'<div style="margin: 6px 0 0 4px">{row.number}. {parts.escape(row.title)}<br>{names}</div>')
    return f'<details style="margin: 8px 0 0"><summary>The exercises by name</summary>{"".join(lines)}</details>'


def _named(row: LessonRow) -> list[tuple[Result, str]]:
    """(mark, name, what it is about and how it stands) for each exercise."""
    titles = dict(zip((name for name, _ in row.marks), row.titles, strict=False))
    return [(mark, f"{name}{_about(titles.get(name))}: {WORDS[mark]}") for name, mark in row.marks]


def _about(title: str | None) -> str:
    return f" ({title})" if title else ""


def _dot(mark: Result, name: str = "") -> str:
    """A dot; with a name it is an image that screen readers name, else it stands beside its word."""
    named = f'role="img" title="{parts.attribute(name)}" aria-label="{parts.attribute(name)}"'
    look = f"font-size: 1.25em; line-height: 1{'; ' + _GREEN if mark == Result.RIGHT else ''}"
    attributes = named if name else 'aria-hidden="true"'
    return f'<span {attributes} style="{look}">{DOTS[mark]}</span>'


def link(target: str, words: str) -> str:
    """A link to a file of the course, as seen from the notebook; the words alone where the file is not beside it."""
    folder = Path.cwd()
    root = next((up for up in (folder, *folder.parents) if (up / target).is_file()), None)
    if root is None:
        return words
    return f'<a href="{quote(os.path.relpath(root / target, folder))}" style="text-decoration: underline">{words}</a>'


def overview(records: Iterable[dict[str, Any]] | None = None) -> Overview:
    """The state of all exercises; one that was once right stays solved."""
    kept = read() if records is None else Kept(list(records))
    return Overview(standing(kept.records), tuple(kept.notes))


def progress() -> Overview:
    """The table of all lessons and exercises, over all notebooks and sessions: what is done, what is next."""
    return overview()
