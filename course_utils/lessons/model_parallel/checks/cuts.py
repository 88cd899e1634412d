"""Cuts of a row of layers: the best, all there are, and one that is often taken for the best."""

import itertools
from collections.abc import Iterator, Sequence

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


def all_cuts(costs: Costs, pieces: int) -> Iterator[list[int]]:
    """Every cut there is; none at all of more layers than can be cut in all ways at once."""
    if len(costs) > 12:
        return
    for cut in itertools.combinations(range(1, len(costs)), pieces - 1):
        yield [b - a for a, b in itertools.pairwise([0, *cut, len(costs)])]


def up_to_the_average(costs: Costs, pieces: int, beyond: bool) -> list[int]:
    """The sizes of pieces that are closed at the average, the layer that passes it inside (`beyond`) or outside."""
    average, sizes, piece = sum(costs) / pieces, [], []
    for place, cost in enumerate(costs):
        last, left = len(sizes) == pieces - 1, len(costs) - place
        full = sum(piece) >= average if beyond else sum(piece) + cost > average
        if piece and not last and (full or left == pieces - 1 - len(sizes)):
            sizes, piece = [*sizes, len(piece)], []
        piece.append(cost)
    return [*sizes, len(piece)]
