"""Which exercises there are: each is declared in its lesson's room, a module in the folder `checks`, nowhere else."""

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from course_utils.checks.exercise import Exercise
from course_utils.checks.sample_answers import SUFFIX
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS, Lesson


def folder_of(lesson: Lesson) -> Path:
    """Where the lesson's exercises are declared, a module each; there is none while they are only planned."""
    return lesson.room / "checks"


def check_packages() -> list[ModuleType]:
    """The packages that hold the checks: this one, and that of each lesson."""
    names = [f"{lesson.package}.checks" for lesson in LESSONS if folder_of(lesson).is_dir()]
    return [importlib.import_module(name) for name in (__package__, *names)]


@functools.cache
def exercises_of(lesson: Lesson) -> tuple[Exercise, ...]:
    """The exercises of a lesson, in the order of its page; none where they are only planned."""
    modules = {path: importlib.import_module(f"{lesson.package}.checks.{path.stem}") for path in _modules_of(lesson)}
    found = [
        _completed(module.EXERCISE, lesson, path) for path, module in modules.items() if hasattr(module, "EXERCISE")
    ]
    return tuple(sorted(found, key=lambda exercise: exercise.number))


def _modules_of(lesson: Lesson) -> list[Path]:
    return [path for path in folder_of(lesson).glob("*.py") if path.stem != "__init__"]


def _completed(exercise: Exercise, lesson: Lesson, module: Path) -> Exercise:
    """The exercise with what its module's path tells: its name, its lesson, its file of answers."""
    library, name = exercise.library, module.stem
    if ":" not in library:
        library = f"{lesson.package}.{library}:{name}"
    file = module.with_suffix(SUFFIX)
    return replace(exercise, library=library, name=name, lesson=lesson.stem, file=file)


def declared() -> tuple[Exercise, ...]:
    """All exercises of all lessons, in order."""
    return tuple(exercise for lesson in LESSONS for exercise in exercises_of(lesson))


def own_answers(since: str = "") -> tuple[str, ...]:
    """Where the course's own answers stand, "module:function": those to exercises, and what is as good as one.

    Args:
        since: stem of the first lesson whose answers count; "" means all.
    """
    exercises = [exercise for exercise in declared() if exercise.lesson >= since]
    return tuple(dotted_name for exercise in exercises for dotted_name in (exercise.library, *exercise.also_hidden))


def names_of(lesson: Lesson) -> tuple[str, ...]:
    """The names of a lesson's exercises: those declared, or those planned where none is."""
    return tuple(exercise.name for exercise in exercises_of(lesson)) or lesson.planned


def find(name: str) -> Exercise:
    """The exercise of this name. Only its own lesson's declarations are loaded.

    Raises:
        CourseError: there is none; the text suggests the nearest name.
    """
    if not isinstance(name, str):
        raise CourseError('The exercise\'s name comes first, in quotes: course.check("rank_squared", rank_squared).')
    for lesson in LESSONS:
        if (folder_of(lesson) / f"{name}.py").exists():
            found = [exercise for exercise in exercises_of(lesson) if exercise.name == name]
            if found:
                return found[0]
        if name in lesson.planned:
            raise CourseError(f'"{name}" belongs to lesson {lesson.number}, which is not written yet.')
    names = [path.stem for lesson in LESSONS for path in _modules_of(lesson) if path.with_suffix(SUFFIX).exists()]
    near = difflib.get_close_matches(name.lower().replace(" ", "_"), names, n=1, cutoff=0.5)
    suggestion = f'Did you mean "{near[0]}"?' if near else "`course.progress()` lists them all."
    raise CourseError(f'There is no exercise "{name}". {suggestion}')


def chosen(names: Iterable[str] = ()) -> tuple[Exercise, ...]:
    """Exercises by their own names or by beginnings of their lessons' stems, "06", in order; without any name, all.

    Raises:
        CourseError: a name is neither.
    """
    stems = {lesson.stem: exercises_of(lesson) for lesson in LESSONS}
    wanted = []
    for name in names:
        of_lessons = [each for stem, names in stems.items() if name and stem.startswith(name) for each in names]
        wanted += of_lessons or [find(name)]
    return tuple(exercise for exercise in declared() if not names or exercise in wanted)


def reference(exercise: Exercise) -> Callable:
    """The library's own answer."""
    return pkgutil.resolve_name(exercise.library)
