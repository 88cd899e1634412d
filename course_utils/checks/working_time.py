"""How long somebody has worked, as far as the records' times tell: an estimate that leaves out what it cannot know."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

LONGEST_PAUSE = 15 * 60
"""Seconds between two records; after a longer time we cannot say that somebody was at work, and count none of it."""


def minutes_spent(
    records: Iterable[dict[str, Any]], lesson_of: Callable[[dict[str, Any]], str | None]
) -> dict[str | None, float]:
    """Minutes of work for each lesson; None stands for records that belong to no lesson.

    The time between two records, of whichever notebooks, goes to the lesson of the later one. Two notebooks at once
    are not counted twice, and a clock that jumps costs one gap at most.

    Args:
        records: in any order; those without a time are passed over.
        lesson_of: the stem of the lesson that a record belongs to.
    """
    stamped = sorted(
        ((time, lesson_of(record)) for record in records if (time := time_of(record)) is not None),
        key=lambda pair: pair[0],
    )
    spent: dict[str | None, float] = defaultdict(float)
    for (before, _), (now, lesson) in pairwise(stamped):
        if now - before <= LONGEST_PAUSE:
            spent[lesson] += (now - before) / 60
    return dict(spent)


def time_of(record: dict[str, Any]) -> float | None:
    """The record's time in seconds since 1970, or None where it holds none."""
    try:
        time = datetime.datetime.fromisoformat(record["time"])
        return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
