"""Cuts of a row of layers: the best, found in another way than the library's."""

import itertools
from collections.abc import Sequence

Costs = Sequence[float]


def by_filling(costs: Costs, pieces: int, longest_first: bool = True) -> list[int]:
    """Find the least limit that `pieces` pieces can keep, then fill piece after piece up to it."""
    if not longest_first:
        return by_filling(costs[::-1], pieces)[::-1]
    sums = sorted({sum(costs[a:b]) for a, b in itertools.combinations(range(len(costs) + 1), 2)})
    return next(sizes for limit in sums if (sizes := filled(costs, pieces, limit)))


def filled(costs: Costs, pieces: int, limit: float) -> list[int]:
    """As many layers for each piece as fit and leave one for each later piece; [] where some are left over."""
    sizes, first = [], 0
    for later in range(pieces)[::-1]:
        end = first
        while end < len(costs) - later and sum(costs[first : end + 1]) <= limit:
            end += 1
        sizes.append(end - first)
        first = end
    return sizes if first == len(costs) and min(sizes) > 0 else []


def pieces_of(costs: Costs, sizes: Sequence[int]) -> list[Costs]:
    """The pieces themselves."""
    ends = list(itertools.accumulate(sizes))
    return [costs[end - size : end] for size, end in zip(sizes, ends, strict=True)]
