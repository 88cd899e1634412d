"""Which exercises there are, and in which module each is declared."""

import difflib
import functools
import importlib

from course_utils.checks.exercise import Exercise
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS

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
    for lesson in LESSONS:
        if name in lesson.exercises:
            for exercise in exercises_of(lesson.stem):
                if exercise.name == name:
                    return exercise
            raise CourseError(f'"{name}" belongs to lesson {lesson.number}, which is not written yet.')
    names = [name for lesson in LESSONS if lesson.stem in LESSON_MODULES for name in lesson.exercises]
    near = difflib.get_close_matches(name.lower().replace(" ", "_"), names, n=1, cutoff=0.5)
    suggestion = f'Did you mean "{near[0]}"?' if near else "`course.progress()` lists them all."
    raise CourseError(f'There is no exercise "{name}". {suggestion}')
