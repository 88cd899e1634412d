"""What is said of files that were handed in and are not run."""

from pathlib import PurePath

from course_utils.syllabus import LESSONS
from course_utils.teacher.handed_in.class_list import ClassMatch, Person
from course_utils.teacher.handed_in.file_tree import Rejection
from course_utils.teacher.handed_in.hand_ins import NOTEBOOK, HandIn, HandIns, Learner
from course_utils.words import count, join, join_first

_SHOWN = 12
"""Names in a line."""


_REJECTIONS: dict[Rejection | None, tuple[str, str]] = {
    Rejection.EMPTY_FOLDER: ("{learner} handed in an empty folder", "the notebook"),
    Rejection.ENCRYPTED: ("{learner} handed in {name} with a password", "the notebook without one"),
    Rejection.BROKEN_ZIP: ("{learner} handed in {name}, which is damaged and cannot be unpacked", "the notebook again"),
    Rejection.OUTSIDE: ("{name} was not unpacked, because its path leads out of its zip", "the notebook itself"),
    Rejection.LINK: ("{learner} handed in {name}, which is a link and no file", "the notebook itself"),
    Rejection.TOO_LARGE: ("{learner} handed in {name}, which is too large to be unpacked", "the notebook alone"),
    Rejection.TOO_DEEP: ("{learner} handed in {name}, a zip in a zip in a zip", "the notebook itself"),
}
"""Why a file is not run → that in words, and what is needed instead."""


def rejection_text(file: HandIn, learner: str) -> str:
    """Why a file is not run, and what is needed instead: for the teacher and the learner to read."""
    its_name = next((f"{lesson.stem}{NOTEBOOK}" for lesson in LESSONS if lesson.stem in file.own_name), "the notebook")
    no_notebook = "{learner} handed in {name}, which is not a notebook", its_name
    what, needed = _REJECTIONS.get(file.rejection, no_notebook)
    return f"{what.format(learner=learner, name=PurePath(file.name).name)}. What is needed is {needed}."


def not_run_lines(hand_ins: HandIns, called: dict[tuple[str, str], str]) -> list[str]:
    """A line for each kind of file that is not run, apart from those that get a line in the table.

    Args:
        hand_ins: what was found.
        called: learner's key → the name that tables use.
    """
    lines = []
    for older, newer in hand_ins.replaced:
        lines.append(f"{called[older.learner.key]} handed in {older.own_name} twice: {newer.name} counts.")
    if hand_ins.passed_over:
        names = [file.name for file in hand_ins.passed_over]
        lines.append(f"Left out, from learners who also handed in a notebook: {join_first(names, _SHOWN)}.")
    if hand_ins.ignored:
        lines.append(
            f"Passed over {count(hand_ins.ignored, 'file')} of systems, editors or the course itself, such as __MACOSX."
        )
    return lines


def matching_lines(matching: ClassMatch, list_name: str) -> list[str]:
    """Who was not found in the class list, and who of it is missing."""
    lines = []
    if matching.unknown:
        lines.append(f"Not in {list_name}: {join_first(list(map(_known_as, matching.unknown)), _SHOWN)}.")
    for learner, several in matching.unclear:
        people = join([_listed_as(person) for person in several[:_SHOWN]])
        lines.append(f"{_known_as(learner)} could be {people}, so no row of {list_name} was given to this learner.")
    if matching.absent:
        lines.append(f"Handed in nothing: {join_first([person.name for person in matching.absent], _SHOWN)}.")
    return lines


def _known_as(learner: Learner) -> str:
    return f"{learner.name} ({learner.id})" if learner.id and learner.id not in learner.name else learner.name


def _listed_as(person: Person) -> str:
    more = person.email or next(iter(person.ids), "")
    return f"{person.name} ({more})" if more else person.name
