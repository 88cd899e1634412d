"""Times as lists of intervals (begin, end): what they cover together, what two of them share, how long that is."""

from collections.abc import Iterable
from itertools import islice

Interval = tuple[float, float]
"""From when to when; the end is no earlier than the begin."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same times without overlaps: sorted, and what touches is one. Intervals without length are left out."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif begin < end:
            merged.append((begin, end))
    return merged


def intersection(first: Iterable[Interval], second: Iterable[Interval]) -> list[Interval]:
    """When something of both was under way, sorted and without overlaps."""
    shared: list[Interval] = []
    mine, others = union(first), union(second)
    i = j = 0
    while i < len(mine) and j < len(others):
        begin, end = max(mine[i][0], others[j][0]), min(mine[i][1], others[j][1])
        if begin < end:
            shared.append((begin, end))
        # Whichever ends first meets nothing more: go on behind it.
        if mine[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return shared


def difference(first: Iterable[Interval], second: Iterable[Interval]) -> list[Interval]:
    """When something of the first was under way and nothing of the second, sorted and without overlaps."""
    left: list[Interval] = []
    others = union(second)
    passed = 0  # those of the others that end before everything still to come
    for begin, end in union(first):
        while passed < len(others) and others[passed][1] <= begin:
            passed += 1
        # Cut from the interval what the others cover; what lies before a cut is left.
        for other_begin, other_end in islice(others, passed, None):
            if other_begin >= end:
                break
            if begin < other_begin:
                left.append((begin, other_begin))
            begin = min(other_end, end)
        if begin < end:
            left.append((begin, end))
    return left


def length(intervals: Iterable[Interval]) -> float:
    """How long something of them was under way; what overlaps counts once."""
    return sum(end - begin for begin, end in union(intervals))
