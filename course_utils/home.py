"""Where the course keeps its notes: what a learner has done, and costs that were measured."""

import os
from pathlib import Path


def course_home() -> Path:
    """The folder that the course keeps its notes in."""
    chosen = os.environ.get("COURSE_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".local" / "share" / "course"
