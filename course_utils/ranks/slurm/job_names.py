"""What a job of the course is called, so that a computing centre can count them."""

from collections.abc import Mapping
from pathlib import Path

from course_utils.syllabus import LESSONS, lesson_of


def name_options(environment: Mapping[str, str]) -> list[str]:
    """The name and the comment by which a centre counts jobs of the course: "course-NN" for a notebook of that lesson.

    The name that a learner or a site has chosen for all jobs stays.
    """
    number = lesson_number(environment.get("JPY_SESSION_NAME", ""))
    name = "course" if number is None else f"course-{number:02}"
    options = {"SBATCH_JOB_NAME": f"--job-name={name}", "SBATCH_COMMENT": f"--comment={name}"}
    return [option for variable, option in options.items() if not environment.get(variable)]


def lesson_number(notebook: str) -> int | None:
    """The number of the lesson that a notebook belongs to, by the name of its file; None for a notebook of others."""
    stem = lesson_of(Path(notebook).stem)
    return next((lesson.number for lesson in LESSONS if lesson.stem == stem), None)
