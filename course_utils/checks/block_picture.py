"""The picture under a wrong answer whose data move in blocks: what is where, with the wrong blocks marked."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from course_utils import draw
from course_utils.checks.exercise import Exercise, Outcome
from course_utils.checks.finding import Kind
from course_utils.errors import CourseError
from course_utils.ranks.virtual.virtual_ranks import snapshots_of_blocks

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

_MOST_RANKS = 8
_DRAWN = (Kind.VALUE, Kind.DEADLOCK)


def block_picture(exercise: Exercise, function: Callable, outcome: Outcome) -> "Picture | None":
    """Draw what each rank held after each round of the failing case; None if nothing can be seen in that.

    More than eight ranks are too many to see: then it is the smallest number of ranks with which blocks are wrong.
    """
    finding, arguments = outcome.finding, outcome.case.arguments
    if exercise.wrong_blocks is None or finding is None or finding.kind not in _DRAWN:
        return None
    sizes = [len(arguments)] if len(arguments) <= _MOST_RANKS else range(2, _MOST_RANKS + 1)
    for size in sizes:
        try:
            frames = snapshots_of_blocks(function, [(own, {}) for own in arguments[:size]])
        except CourseError:  # it does something that virtual ranks cannot
            continue
        if wrong := exercise.wrong_blocks(frames, arguments[0]):
            return draw.blocks(frames, wrong=wrong)
    return None
