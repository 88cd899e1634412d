"""A folder for nbgrader with the course's exercises in it: instructor versions, and the settings that they need.

An instructor version is the exercise notebook with each whole function in it, its body between `### BEGIN SOLUTION`
and `### END SOLUTION`: `nbgrader generate_assignment` takes that out again. Ids and points are those that the exercise
notebook carries already, so a learner may hand in either: what nbgrader released, or the course's own notebook.
"""

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_utils.checks.notebook import body_text
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS, ROOT, Lesson

SETTINGS = """\
# What nbgrader has to know of this course. Written once by `course nbgrader`; it is yours to change.
c = get_config()
c.Execute.timeout = 300  # seconds for a cell: ranks take a few to start, a check that waits for hanging ranks some more
c.IgnorePattern.enabled = True  # text on stderr is not a mistake;
c.IgnorePattern.pattern = ".*"  # an exception still is
"""


def write_course(folder: Path, lessons: Sequence[str] = ()) -> list[Path]:
    """Write an instructor version of each lesson's exercises, and nbgrader's settings where there are none yet.

    Args:
        folder: of nbgrader's course; an assignment is called as its lesson, `source/04_messages/04_messages.ipynb`.
        lessons: stems or their beginnings, "04"; none means all that are written.

    Returns:
        The files that were written.

    Raises:
        CourseError: there is no such lesson, or its exercises are not built.
    """
    for name in lessons:
        if not any(lesson.stem.startswith(name) for lesson in LESSONS):
            raise CourseError(f"No lesson is called {name}. There are: {', '.join(each.stem for each in LESSONS)}.")
    wanted = [lesson for lesson in LESSONS if not lessons or lesson.stem.startswith(tuple(lessons))]
    written = []
    settings = folder / "nbgrader_config.py"
    if not settings.exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings.write_text(SETTINGS, encoding="utf-8")
        written.append(settings)
    for lesson in wanted:
        target = folder / "source" / lesson.stem / f"{lesson.stem}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(instructor_version(lesson), target)
        written.append(target)
    return written


def instructor_version(lesson: Lesson) -> NotebookNode:
    """The exercise notebook of a lesson with its solutions between nbgrader's two lines."""
    name = f"{lesson.stem}.ipynb"
    notebook, solutions = _read(ROOT / "exercises" / name), _read(ROOT / "exercises" / "solutions" / name)
    whole = [body_text(cell.source) for cell in solutions.cells if is_answer(cell)]
    answers = [cell for cell in notebook.cells if is_answer(cell)]
    for cell, body in zip(answers, whole, strict=True):
        *kept, stub = cell.source.splitlines()
        turn = stub.partition('("')[2].rpartition('")')[0]
        lines = [*kept, f"    # {turn}", "    ### BEGIN SOLUTION", body, "    ### END SOLUTION"]
        cell.source = "\n".join(lines)
    return notebook


def is_answer(cell: NotebookNode) -> bool:
    """Whether the cell is one that learners write an answer into."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}). `make notebooks` builds it.") from None
