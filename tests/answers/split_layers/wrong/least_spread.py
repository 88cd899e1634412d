"""Refused with: Does it matter how cheap the cheapest piece is?"""

import itertools

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    def spread(cut):
        sums = [sum(costs[a:b]) for a, b in itertools.pairwise([0, *cut, len(costs)])]
        return max(sums) - min(sums)

    cut = min(itertools.combinations(range(1, len(costs)), ranks - 1), key=spread)
    return [b - a for a, b in itertools.pairwise([0, *cut, len(costs)])]
