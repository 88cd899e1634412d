"""How far a learner has come in each lesson, from the records: exercises, predictions, minutes."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from course_utils.checks.prediction_scores import asked_on, comparisons
from course_utils.checks.registry import exercises_of, names_of
from course_utils.checks.verdict import Result
from course_utils.syllabus import LESSONS, lesson_of

LONGEST_PAUSE = 15 * 60
"""Seconds between two records; after a longer time we cannot say that somebody was at work, and count none of it."""
_BETTER = {Result.NOT_BEGUN: 0, Result.WRONG: 1, Result.RIGHT: 2}


@dataclass(frozen=True)
class LessonRow:
    """One lesson.

    Attributes:
        number, stem, title, written: the lesson's own.
        marks: (exercise, best mark so far) in the order of the page.
        planned: minutes that the lesson takes.
        titles, takes: what each exercise is about, in a few words, and the minutes that it takes.
        spent: minutes of work that the records show; pauses are not counted.
        hit, compared, asked: predictions that were right, that have met their measurement, that the lesson's pages
            ask for.
        begun: whether there is any record of it.
    """

    number: int
    stem: str
    title: str
    written: bool
    marks: tuple[tuple[str, Result], ...]
    planned: int = 0
    titles: tuple[str, ...] = ()
    takes: tuple[int, ...] = ()
    spent: float = 0.0
    hit: int = 0
    compared: int = 0
    asked: int = 0
    begun: bool = False

    @property
    def done(self) -> int:
        """How many of the exercises are solved."""
        return sum(mark == Result.RIGHT for _, mark in self.marks)


class Lessons:
    """Which lesson an exercise, a prediction or a record belongs to."""

    def __init__(self) -> None:
        self.all = LESSONS
        self.exercises = {lesson.stem: names_of(lesson) for lesson in LESSONS}
        self.asked = {lesson.stem: frozenset().union(*map(asked_on, lesson.notebooks)) for lesson in LESSONS}
        self._of_exercise = {name: stem for stem, names in self.exercises.items() for name in names}
        self._of_prediction: dict[str, set[str]] = {}
        for stem, asked in self.asked.items():
            for name, _ in asked:
                self._of_prediction.setdefault(name, set()).add(stem)

    def of_record(self, record: dict[str, Any]) -> str | None:
        """The stem of the lesson that a record belongs to, or None."""
        for key in ("exercise", "hint"):
            if isinstance(name := record.get(key), str) and name in self._of_exercise:
                return self._of_exercise[name]
        name = record.get("prediction", record.get("measured"))
        return self.of_prediction(name if isinstance(name, str) else "", record.get("page"))

    def of_prediction(self, name: str, page: Any) -> str | None:
        """The stem of the lesson that asks for a prediction; if none or several do, that of the page it was made on."""
        stems = self._of_prediction.get(name, set())
        page = lesson_of(page) if isinstance(page, str) else None
        if len(stems) == 1:
            return next(iter(stems))
        return page if page in self.exercises else min(stems, default=None)


def standing(records: Iterable[dict[str, Any]]) -> tuple[LessonRow, ...]:
    """A row for each lesson; an exercise that was once right stays solved.

    Args:
        records: in order; what is unknown or malformed in them is left out.
    """
    records, lessons = list(records), Lessons()
    marks: dict[str, Result] = {}
    for record in records:
        name, mark = record.get("exercise"), record.get("mark")
        if isinstance(name, str) and isinstance(mark, str) and mark in _BETTER:
            marks[name] = max(marks.get(name, Result.NOT_BEGUN), Result(mark), key=_BETTER.__getitem__)
    begun = {lessons.of_record(record) for record in records}
    spent = minutes_spent(records, lessons.of_record)
    compared: dict[str | None, list[bool]] = {}
    for comparison in comparisons(records):
        compared.setdefault(lessons.of_prediction(comparison.name, comparison.page), []).append(comparison.hit)
    return tuple(
        LessonRow(
            lesson.number,
            lesson.stem,
            lesson.title,
            lesson.written,
            tuple((name, marks.get(name, Result.NOT_BEGUN)) for name in lessons.exercises[lesson.stem]),
            planned=lesson.minutes_of_pages,
            titles=tuple(exercise.title for exercise in exercises_of(lesson)),
            takes=tuple(exercise.minutes for exercise in exercises_of(lesson)),
            spent=spent.get(lesson.stem, 0.0),
            hit=sum(compared.get(lesson.stem, [])),
            compared=len(compared.get(lesson.stem, [])),
            asked=len(lessons.asked[lesson.stem]),
            begun=lesson.stem in begun,
        )
        for lesson in lessons.all
    )


def minutes_spent(
    records: Iterable[dict[str, Any]], lesson_of: Callable[[dict[str, Any]], str | None]
) -> dict[str | None, float]:
    """Minutes of work for each lesson, an estimate; None stands for records that belong to no lesson.

    The time between two records, of whichever notebooks, goes to the lesson of the later one. Two notebooks at once
    are not counted twice, and a clock that jumps costs one gap at most.

    Args:
        records: in any order; those without a time are passed over.
        lesson_of: the stem of the lesson that a record belongs to.
    """
    stamped = sorted(
        ((time, lesson_of(record)) for record in records if (time := time_of(record)) is not None),
        key=lambda pair: pair[0],
    )
    spent: dict[str | None, float] = defaultdict(float)
    for (before, _), (now, lesson) in pairwise(stamped):
        if now - before <= LONGEST_PAUSE:
            spent[lesson] += (now - before) / 60
    return dict(spent)


def time_of(record: dict[str, Any]) -> float | None:
    """The record's time in seconds since 1970, or None where it holds none."""
    try:
        time = datetime.datetime.fromisoformat(record["time"])
        return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
