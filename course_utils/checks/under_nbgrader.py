"""What a check does under nbgrader, which runs notebooks by itself and reads marks out of cells' outputs.

For nbgrader a graded cell is wrong when it raised an error or wrote to stderr, and right otherwise. A learner's check
prints its verdict and never raises. So under nbgrader, and only there, `insist` raises after a verdict other than ✓,
and what a check writes to stderr goes to stdout. nbgrader says that it is at work by the variable NBGRADER_EXECUTION,
"autograde" or "validate" (nbgrader 0.9: converters/autograde.py, validator.py, utils.determine_grade).
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from course_utils.errors import CourseError

if TYPE_CHECKING:
    from course_utils.checks.verdict import Verdict


class NotRight(CourseError):
    """Under nbgrader: the check has not accepted the answer, so the cell is worth no points."""


def at_work() -> bool:
    """Whether nbgrader runs this notebook, to mark it or to validate it."""
    return bool(os.environ.get("NBGRADER_EXECUTION"))


@contextlib.contextmanager
def stderr_to_stdout() -> Iterator[None]:
    """Under nbgrader: a warning inside is text like any other, no reason for zero points."""
    if not at_work():
        yield
        return
    with contextlib.redirect_stderr(sys.stdout):
        yield


def insist(verdict: "Verdict") -> None:
    """Under nbgrader: let a check's cell fail where the answer is not right.

    Raises:
        NotRight: nbgrader is at work, and the verdict is ✗ or ○.
    """
    if at_work() and not verdict.passed:
        raise NotRight(str(verdict))
