"""Refused with: How many cuts are there of 60 layers for 10 ranks: can each be tried?"""

import itertools

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    best = None
    for cut in itertools.combinations(range(1, len(costs)), ranks - 1):
        borders = [0, *cut, len(costs)]
        sizes = [b - a for a, b in itertools.pairwise(borders)]
        key = (max(sum(costs[a:b]) for a, b in itertools.pairwise(borders)), [-size for size in sizes])
        if best is None or key < best[0]:
            best = (key, sizes)
    return best[1]
