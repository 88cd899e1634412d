"""What some combinations of ideas reach: a table for those who have tried the capstone once and missed."""

from dataclasses import dataclass

from course_utils.checks.panel import Panel
from course_utils.lessons.read_the_manual.capstone.kept_results import has_failed
from course_utils.templates import render

SOURCE = "Five runs of each, on four ranks with links of 100 Mbit/s, in November 2026"
NOT_YET = (
    "This table appears after your first attempt: a check that did not pass, or a training run of your own, tried with "
    "`tried(ranks, …)`, that missed what is asked for."
)


@dataclass(frozen=True)
class Combination:
    """Ideas of several lessons in one training run, and what it used.

    Attributes:
        ideas: in words, each with its lesson.
        accuracy: of the held-out images, as a range over the runs.
        megabytes: out of a node.
        passes: image passes of a node.
    """

    ideas: str
    accuracy: str
    megabytes: str
    passes: int


COMBINATIONS: tuple[Combination, ...] = ()
"""What was recorded; see `SOURCE`."""


def what_others_reached() -> Panel:
    """Return the table of what others reached; before a first failed attempt, how to get it."""
    if not has_failed():
        return Panel(NOT_YET.replace("`", ""), render(_TEMPLATE, not_yet=NOT_YET, rows=(), source=""))
    lines = [f"{row.ideas}: {row.accuracy}, {row.megabytes} MB, {row.passes:,} image passes" for row in COMBINATIONS]
    html = render(_TEMPLATE, not_yet="", rows=COMBINATIONS, source=SOURCE)
    return Panel("\n".join([*lines, f"({SOURCE}.)"]), html)


_TEMPLATE = "course_utils/lessons/read_the_manual/capstone/others.html"
