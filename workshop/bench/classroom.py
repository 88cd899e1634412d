"""How long a teacher waits for the marks of a class: submissions that are right, wrong, unfinished, broken, hostile."""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm.auto import tqdm

from course_utils.checks.registry import chosen
from course_utils.syllabus import LESSONS
from course_utils.teacher.marks import grade_each
from workshop.bench.rows import Row, spread
from workshop.bench.submissions import write_class

CLASS = 30
TARGET = 600.0
"""Seconds for a class of 30, on two cores."""


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Grade `runs` submissions of each lesson, and say what 30 take; `classroom 07 --runs 30` grades all.

    Args:
        only: numbers of lessons; none means all.
    """
    wanted = {exercise.lesson for exercise in chosen(only)}
    lessons = [lesson for lesson in LESSONS if lesson.stem in wanted]
    rows = []
    with tqdm(total=runs * len(lessons), unit=" submissions", file=sys.stderr, leave=False) as bar:
        for lesson in lessons:
            bar.set_description(lesson.stem)
            with tempfile.TemporaryDirectory(prefix="course-class-") as folder:
                seconds, began = [], time.perf_counter()
                for _ in grade_each(write_class(Path(folder), lesson, runs)):
                    seconds.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    bar.update()
            total, about = CLASS * sum(seconds) / runs, CLASS * spread(seconds)
            rows.append(
                Row("classroom", f"{lesson.stem}: {CLASS} submissions", total, "s", "lower", TARGET, about, runs)
            )
    return rows
