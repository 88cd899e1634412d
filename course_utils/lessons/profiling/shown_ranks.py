"""Chooses which of many ranks a table or a picture shows: those at both ends, and the one in the middle."""

from collections.abc import Callable, Sequence
from typing import TypeVar

MOST_SHOWN = 16
"""More ranks than this are not shown together."""
Rank = TypeVar("Rank")


def shown_of(ranks: Sequence[Rank], size: Callable[[Rank], float]) -> list[Rank]:
    """Return all ranks; of more than `MOST_SHOWN` those with the smallest and largest sizes, and the median one.

    They stay in the order in which they were given.
    """
    if len(ranks) <= MOST_SHOWN:
        return list(ranks)
    by_size = sorted(range(len(ranks)), key=lambda number: size(ranks[number]))
    few = (MOST_SHOWN - 1) // 2
    chosen = {*by_size[:few], by_size[len(ranks) // 2], *by_size[few - MOST_SHOWN + 1 :]}
    return [ranks[number] for number in sorted(chosen)]
