"""Errors that a learner reads: a line or two that say what happened and what to do next, without a traceback."""


class CourseError(Exception):
    """What the course has to say to the person at the keyboard. A notebook shows its text and nothing else."""

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: the lines shown in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class RankError(CourseError):
    """Something went wrong on the ranks: one raised, or all of them waited. The text names rank, call and line."""


class RanksGone(CourseError):
    """The ranks have ended, and with them their variables. `ranks.restart()` brings new ones."""
