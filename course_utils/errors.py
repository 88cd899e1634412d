"""Errors that a learner reads: a line or two that say what happened and what to do next, without a traceback."""

from course_utils.words import wrapped


class CourseError(Exception):
    """What the course has to say to the person at the keyboard. A notebook shows its text and nothing else."""

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: the lines shown in place of a traceback."""
        return wrapped(f"{type(self).__name__}: {self}").splitlines()


class CallEnded(CourseError):
    """A call on the ranks did not come to a good end; `ending` says why, see `ranks.ending`, "" where none was made."""

    def __init__(self, text: str, ending: str = "") -> None:
        super().__init__(text)
        self.ending = ending


class RankError(CallEnded):
    """Something went wrong on the ranks: one raised, or all of them waited. The text names rank, call and line."""


class RanksGone(CallEnded):
    """The ranks have ended, and with them their variables. `ranks.restart()` brings new ones."""


class NoSuchRank(ValueError):
    """A call names a rank that its communicator does not have."""


class MessageTruncated(ValueError):
    """A message has more bytes than the array that is to hold it."""


def nearest(name: str, names: list[str]) -> str:
    """ " Did you mean …?" for the name that is nearest, or nothing where none is near."""
    import difflib

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
