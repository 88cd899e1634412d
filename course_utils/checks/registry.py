"""Which exercises there are, and in which module each is declared."""

import difflib
import functools
import importlib

from course_utils.checks.exercise import Exercise
from course_utils.errors import CourseError

LESSON_MODULES = {
    "00_first_steps": "course_utils.checks.first_steps",
    "04_messages": "course_utils.checks.messages",
    "06_data_parallel": "course_utils.checks.data_parallel",
}


@functools.cache
def exercises_of(stem: str) -> tuple[Exercise, ...]:
    """The exercises of a lesson, in the order in which they come; none where the lesson is not written."""
    module = LESSON_MODULES.get(stem)
    return tuple(importlib.import_module(module).EXERCISES) if module else ()


def find(name: str) -> Exercise:
    """The exercise of this name.

    Raises:
        CourseError: there is none; the text suggests the nearest name.
    """
    if not isinstance(name, str):
        raise CourseError('The exercise\'s name comes first, in quotes: course.check("rank_squared", rank_squared).')
    names = []
    for stem in LESSON_MODULES:
        for exercise in exercises_of(stem):
            if exercise.name == name:
                return exercise
            names.append(exercise.name)
    raise CourseError(f'There is no exercise "{name}". {_suggestion(name, names)}')


def _suggestion(name: str, names: list[str]) -> str:
    from course_utils.syllabus import LESSONS

    for lesson in LESSONS:
        if name in lesson.exercises:
            return f"It belongs to lesson {lesson.number}, which is not written yet."
    near = difflib.get_close_matches(name.lower().replace(" ", "_"), names, n=1, cutoff=0.5)
    return f'Did you mean "{near[0]}"?' if near else "`course.progress()` lists them all."
