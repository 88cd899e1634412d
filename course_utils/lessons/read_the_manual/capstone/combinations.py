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


COMBINATIONS = (
    Combination("equal start without messages (6), top-k of 0.2% for 5 epochs (7)", "98–99%", "0.97", 3_600),
    Combination(
        "equal start (6), 6 epochs of local SGD with 4 averages of changes in 8 bits (8, 7)", "97–98%", "0.98", 4_560
    ),
    Combination(
        "equal start (6), 6 epochs of local SGD with 2 averages in half precision (8, 7), a decaying learning rate (1)",
        "95–97%",
        "1.02",
        4_560,
    ),
    Combination("start in half precision, local SGD, the largest 2% of the changes (7, 8)", "95–96%", "1.14", 4_320),
    Combination(
        "equal start (6), top-k of 0.1% for 4 epochs (7), at the end rank 0's model in half precision to all",
        "97–99%",
        "1.05",
        4_320,
    ),
    Combination("equal start (6), 4 epochs of local SGD, one average in float32 (8): misses", "9–11%", "1.01", 2_880),
    Combination("the same, and one pass without a step at the end: misses", "41–70%", "1.01", 3_120),
)
"""What was recorded; see `SOURCE`."""


def what_others_reached() -> Panel:
    """Return the table of what others reached; before a first failed attempt, how to get it."""
    if not has_failed():
        return Panel(NOT_YET.replace("`", ""), render(_TEMPLATE, not_yet=NOT_YET, rows=(), source=""))
    lines = [f"{row.ideas}: {row.accuracy}, {row.megabytes} MB, {row.passes:,} image passes" for row in COMBINATIONS]
    html = render(_TEMPLATE, not_yet="", rows=COMBINATIONS, source=SOURCE)
    return Panel("\n".join([*lines, f"({SOURCE}.)"]), html)


_TEMPLATE = "course_utils/lessons/read_the_manual/capstone/what_others_reached.html"
