"""Where the course keeps its notes: what a learner has done, and costs that were measured."""

from pathlib import Path

from course_utils import settings


def course_home() -> Path:
    """The folder that the course keeps its notes in."""
    return settings.HOME.value()
