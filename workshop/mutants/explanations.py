"""Mutants of right answers that are right as well, and why: read from `explained/`, a file for each lesson.

    ## tree_broadcast                                             the exercise
    - `plain | total = a + b | a and b were swapped`: A sum has no order.

Between the backticks stands the mutant as `python -m workshop.mutants` names it: of which right answer, in which line,
and what is different. `library` is the course's own answer.
"""

import re
from functools import cache
from pathlib import Path

from course_utils.checks.exercise import Exercise
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT

FOLDER = ROOT / "workshop" / "mutants" / "explained"
_ENTRY = re.compile(r"- `(?P<mutant>[^`]+)`: (?P<reason>.+)")


def explained(exercise: Exercise) -> dict[str, str]:
    """Each explained mutant of an exercise's right answers → why it is right."""
    return _in_file(FOLDER / f"{exercise.lesson}.md").get(exercise.name, {})


@cache
def _in_file(file: Path) -> dict[str, dict[str, str]]:
    """Exercise → mutant → reason; nothing where there is no file.

    Raises:
        CourseError: a line is of no known form, or names a mutant again; the text says which.
    """
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else (), start=1):
        if line.startswith("## "):
            entries = found.setdefault(line[3:].strip(), {})
        elif line.startswith("- "):
            entry = _ENTRY.fullmatch(line)
            if not entry or entry["mutant"] in entries:
                raise CourseError(f"{file.name}, line {number}: expected a new mutant, as in - `mutant`: reason")
            entries[entry["mutant"]] = entry["reason"]
    return found
