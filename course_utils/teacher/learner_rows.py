"""One row for each learner: the marks that count, their sum, and whether something was late or is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.teacher.handed_in.class_list import Person
from course_utils.teacher.marks import MarkLine, write_table
from course_utils.words import join


@dataclass(frozen=True)
class LearnerRow:
    """A learner's marks.

    Attributes:
        learner: the name.
        marks: exercise → 1 or 0, of what counts.
        id: on the platform that the files are from; "" without one.
        person: in the class list; None if there is no list, or nobody in it fits.
        late: whether something that counts was late; None if nothing tells.
        without_answers: why there are no marks; "" if there are some.
        handed_in: whether anything was.
    """

    learner: str
    marks: dict[str, int]
    id: str = ""
    person: Person | None = None
    late: bool | None = None
    without_answers: str = ""
    handed_in: bool = True

    @property
    def sum(self) -> int:
        """How many answers are right."""
        return sum(self.marks.values())


def learner_rows(
    lines: Iterable[MarkLine], people: dict[str, Person] | None = None, absent: Sequence[Person] = ()
) -> list[LearnerRow]:
    """Sum up the lines that count; in the order of the class list, then of names.

    Args:
        lines: of the table of marks.
        people: learner → person of the class list.
        absent: people who are in the class list, but not in the lines.
    """
    people = people or {}
    own: dict[str, list[MarkLine]] = {}
    for line in lines:
        if line.counts:
            own.setdefault(line.learner, []).append(line)
    rows = [_row(learner, counting, people.get(learner)) for learner, counting in own.items()]
    rows += [LearnerRow(person.name, {}, person=person, handed_in=False) for person in absent]
    return sorted(rows, key=lambda row: row.learner.casefold())


def _row(learner: str, lines: Sequence[MarkLine], person: Person | None) -> LearnerRow:
    judged = [line for line in lines if line.mark.exercise]
    known = [line.late for line in lines if line.late is not None]
    return LearnerRow(
        learner,
        {line.mark.exercise: line.mark.mark for line in judged},
        next((line.id for line in lines if line.id), ""),
        person,
        any(known) if known else None,
        "" if judged else " ".join(line.mark.verdict for line in lines),
    )


def exercises_in(rows: Iterable[LearnerRow]) -> list[str]:
    """All exercises that a row has a mark for, in the order of first mention."""
    return list(dict.fromkeys(name for row in rows for name in row.marks))


def write_learner_rows(rows: Sequence[LearnerRow], file: Path) -> None:
    """Write a table with a row for each learner."""
    exercises = exercises_in(rows)
    table: list[list[object]] = [["learner", "id", "e-mail", *exercises, "sum", "of", "late", "note"]]
    for row in rows:
        person_ids = row.person.ids if row.person else ()
        ids = person_ids[0] if person_ids else row.id
        late = "" if row.late is None else "yes" if row.late else "no"
        marks = [row.marks.get(name, 0) for name in exercises]
        table.append(
            [row.learner, ids, row.person.email if row.person else "", *marks, row.sum, len(exercises), late, note(row)]
        )
    write_table(file, table)


def note(row: LearnerRow) -> str:
    """Why a row has no marks; "" if it has some."""
    return row.without_answers if row.handed_in else "handed in nothing"


def feedback_line(row: LearnerRow, exercises: Sequence[str]) -> str:
    """The sum and what is missing, for the column in which a platform shows a comment."""
    if not row.handed_in:
        return ""
    if not row.marks:
        return row.without_answers
    missing = [name for name in exercises if not row.marks.get(name)]
    return f"{row.sum} of {len(exercises)}" + (f". Not right yet: {join(missing)}" if missing else "")
