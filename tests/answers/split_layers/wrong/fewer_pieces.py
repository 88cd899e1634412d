"""Refused with: Does every rank get at least one layer?"""

from course_utils.errors import CourseError


def limit_of(costs, ranks):
    """The least that the most expensive of `ranks` pieces can cost."""
    n = len(costs)
    best = [sum(costs[first:]) for first in range(n)]
    for pieces in range(2, ranks + 1):
        best = [
            min(max(sum(costs[first:end]), best[end]) for end in range(first + 1, n)) if n - first >= pieces else 1e99
            for first in range(n)
        ]
    return best[0]


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    limit, sizes, total = limit_of(costs, ranks), [0], 0
    for cost in costs:
        if total + cost > limit:
            sizes.append(0)
            total = 0
        sizes[-1] += 1
        total += cost
    return sizes + [0] * (ranks - len(sizes))
