"""Refused with: Whose list is `costs`: does the caller need it again?"""

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

    limit, sizes = limit_of(costs, ranks), []
    for later in range(ranks - 1, -1, -1):
        total, size = costs.pop(0), 1
        while len(costs) > later and total + costs[0] <= limit:
            total, size = total + costs.pop(0), size + 1
        sizes.append(size)
    return sizes
