"""The marks of a class in the forms that learning platforms import.

If the class list is the platform's own export, its rows and columns are kept, and only marks are filled in. Otherwise
the rows are made from the ids in the names of the files that the platform handed over.

Sources:
    Moodle: mod/assign/feedback/offline/importgradeslib.php, `init` and `next`: the columns *Identifier*, *Grade* and
        *Last modified (grade)* have to be there, in the language of the teacher; the identifier ends with the number
        that files have in their names. An empty grade changes nothing.
    Canvas: lib/gradebook_importer.rb, `row_has_student_headers?`, `update_column_count`, `process_pp` and
        `process_student`: *Student* and *ID* come first, *Section* is the last column before assignments, a column of
        an assignment is called by its title and its id, and people are found by their id.
    ILIAS: components/ILIAS/Exercise/Assignment, `ilExAssignmentStatusFile::loadMemberSheet`: all titles of
        `status.csv` have to be there; rows whose *update* is 1 are read, with the status notgraded, passed or failed.
"""

from collections.abc import Sequence
from pathlib import Path

from course_utils.teacher.handed_in.class_list import ClassList
from course_utils.teacher.handed_in.portal_names import Portal
from course_utils.teacher.learner_rows import LearnerRow, exercises_in, feedback_line
from course_utils.teacher.marks import write_table

_MOODLE = (
    *("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Grade can be changed"),
    *("Last modified (submission)", "Last modified (grade)", "Feedback comments"),
)
_GRADE = ("grade", "bewertung")
_MOST = ("maximum grade", "bestwertung", "höchste bewertung")
_COMMENT = ("feedback comments", "feedback als kommentar", "feedback-kommentare")
_IDENTIFIER = ("identifier", "id")
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_ILIAS = (
    *("update", "usr_id", "login", "lastname", "firstname", "status", "mark", "notice", "comment"),
    *("plagiarism", "plag_comment"),
)
_NEVER = "-"
"""What Moodle writes for a time that there is not."""

Table = list[list[str]]


def portal_table(portal: Portal, rows: Sequence[LearnerRow], assignment: str, people: ClassList | None) -> Table:
    """Marks as a platform imports them; the first row names the columns.

    Args:
        portal: which platform.
        rows: a learner each.
        assignment: what the platform is to call these marks, if its export has no column for them.
        people: the class list; None without one.
    """
    fill = {Portal.MOODLE: _for_moodle, Portal.CANVAS: _for_canvas, Portal.ILIAS: _for_ilias}[portal]
    return fill(rows, assignment, people)


def write_portal_table(table: Table, file: Path) -> None:
    """Write it as platforms read it: in UTF-8, without a mark at its beginning."""
    write_table(file, table, mark=False)


def moodle_maximum(people: ClassList | None) -> float | None:
    """The largest grade that Moodle's worksheet allows, or None if the class list is no such worksheet."""
    column = people.column(_MOST) if people and people.column(_GRADE) else None
    values = {number for row in people.rows if (number := _number(row[column]))} if people and column else set()
    return values.pop() if len(values) == 1 else None


def _for_moodle(rows: Sequence[LearnerRow], assignment: str, people: ClassList | None) -> Table:
    exercises = exercises_in(rows)
    worksheet = people if people and people.column(_GRADE) and people.column(_IDENTIFIER) else None
    if worksheet is None:
        table = [list(_MOODLE)]
        for row in filter(_has_id, rows):
            grade, most = _grade(row, len(exercises), None), str(len(exercises))
            email, comment = row.person.email if row.person else "", feedback_line(row, exercises)
            table.append([f"Participant {row.id}", row.learner, email, "", grade, most, "Yes", "", _NEVER, comment])
        return table
    grades, comments = worksheet.column(_GRADE), worksheet.column(_COMMENT)
    most_of_all = moodle_maximum(worksheet)
    filled = {id(row.person.row): row for row in rows if row.person}
    table = [list(worksheet.columns)]
    for listed in worksheet.rows:
        own = dict(listed)
        if found := filled.get(id(listed)):
            own[grades or ""] = _grade(found, len(exercises), most_of_all)
            if comments:
                own[comments] = feedback_line(found, exercises)
        table.append([own[column] for column in worksheet.columns])
    return table


def _grade(row: LearnerRow, number: int, most: float | None) -> str:
    """The sum, on the platform's scale if that is known; "" for somebody who handed in nothing."""
    if not row.handed_in:
        return ""
    return f"{row.sum * most / number:.5g}" if most and number else str(row.sum)


def _for_canvas(rows: Sequence[LearnerRow], assignment: str, people: ClassList | None) -> Table:
    number = len(exercises_in(rows))
    gradebook = people if people and people.columns[:2] == _CANVAS[:2] and _CANVAS[-1] in people.columns else None
    if gradebook is None:
        table = [[*_CANVAS, assignment], ["    Points Possible", "", "", "", "", str(number)]]
        for row in filter(_has_id, rows):
            table.append([row.learner, row.id, "", "", "", _grade(row, number, None)])
        return table
    information = gradebook.columns[: gradebook.columns.index(_CANVAS[-1]) + 1]
    own_column = next((column for column in gradebook.columns if assignment.casefold() in column.casefold()), None)
    filled = {id(row.person.row): row for row in rows if row.person}
    table = [[*information, own_column or assignment]]
    for listed in gradebook.rows:
        if found := filled.get(id(listed)):
            points = _grade(found, number, None)
        elif listed[information[0]].strip() == "Points Possible":
            points = (listed[own_column] if own_column else "") or str(number)
        else:
            points = ""
        table.append([*(listed[column] for column in information), points])
    return table


def _for_ilias(rows: Sequence[LearnerRow], assignment: str, people: ClassList | None) -> Table:
    exercises = exercises_in(rows)
    table = [list(_ILIAS)]
    for row in rows:
        listed = row.person.row if row.person else {}
        first, _, last = row.learner.rpartition(" ")
        if not (user := listed.get("usr_id") or row.id):
            continue
        own = {
            "update": str(int(row.handed_in)),
            "usr_id": user,
            "login": listed.get("login", ""),
            "lastname": listed.get("lastname") or last,
            "firstname": listed.get("firstname") or first,
            "status": listed.get("status") or "notgraded",
            "mark": _grade(row, len(exercises), None),
            "notice": listed.get("notice", ""),
            "comment": feedback_line(row, exercises),
        }
        table.append([own.get(column, "") for column in _ILIAS])
    return table


def _has_id(row: LearnerRow) -> bool:
    return bool(row.id)


def is_filled_for(table: Table, rows: Sequence[LearnerRow]) -> bool:
    """Whether the table has a line for each learner who handed something in; else the platform's ids are missing."""
    return len(table) > sum(row.handed_in for row in rows)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
