"""What a rank does before a stranger's first line: where submissions are graded, the grader hangs its guard in here."""

from collections.abc import Callable

hooks: list[Callable[[], None]] = []
"""Empty on a learner's own ranks."""


def arm() -> None:
    """Let a contained rank's guard look at things as they are now, and refuse from here on; elsewhere do nothing."""
    for begin in hooks:
        begin()
