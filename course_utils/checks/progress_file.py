"""What a learner has done, as a file for a teacher: results alone, without answers, guesses or times of day."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checks.lesson_progress import LessonRow
from course_utils.checks.prediction_scores import Comparison
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.own_files import replace_own

FORMAT = "course progress 1"
_LARGEST = 1 << 20
"""Bytes; a file of somebody who has done everything has some thousands."""


@dataclass(frozen=True)
class LearnerProgress:
    """A learner's progress, as a teacher reads it.

    Attributes:
        name: the learner's.
        solved, tried: names of exercises; what is solved is not among those tried.
        minutes: of work, by the stem of the lesson.
        begun: stems of lessons of which there is any record.
        hit: "prediction: question" → whether the first measurement found the prediction right.
    """

    name: str
    solved: frozenset[str]
    tried: frozenset[str]
    minutes: dict[str, float]
    begun: frozenset[str]
    hit: dict[str, bool]


def save_progress(rows: Sequence[LessonRow], compared: Iterable[Comparison], file: Path) -> None:
    """Write progress to a file; an older one is replaced, and no other file.

    Raises:
        CourseError: there is another file of that name, or it cannot be written.
    """
    marks = [(name, mark) for row in rows for name, mark in row.marks]
    found = {
        "format": FORMAT,
        "solved": [name for name, mark in marks if mark == Result.RIGHT],
        "tried": [name for name, mark in marks if mark == Result.WRONG],
        "minutes": {row.stem: round(row.spent) for row in rows if row.spent >= 1},
        "begun": [row.stem for row in rows if row.begun],
        "predictions": {f"{each.name}: {each.question}": each.hit for each in compared},
    }
    mark = json.dumps({"format": FORMAT}).strip("{}")
    replace_own(file, json.dumps(found, indent=1), mark, "holds no progress")


def read_progress(file: Path, name: str) -> LearnerProgress:
    """Read what a learner sent. What is unknown or malformed in it is left out.

    Raises:
        CourseError: it is no such file.
    """
    found = _loaded(file)
    if found.get("format") != FORMAT:
        raise CourseError(f"{name} sent a file that holds no progress. `course.progress('progress.json')` writes one.")
    minutes, hits = found.get("minutes"), found.get("predictions")
    return LearnerProgress(
        name,
        solved := _names(found.get("solved")),
        _names(found.get("tried")) - solved,
        {str(stem): value for stem, value in _items(minutes) if isinstance(value, int | float) and value >= 0},
        _names(found.get("begun")),
        {str(question): hit for question, hit in _items(hits) if type(hit) is bool},
    )


def _loaded(file: Path) -> dict[str, Any]:
    """The file's object; an empty one for what is none."""
    try:
        with file.open("rb") as content:
            found = json.loads(content.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names(value: object) -> frozenset[str]:
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()


def _items(value: object) -> Iterable[tuple[object, object]]:
    return value.items() if isinstance(value, dict) else ()
