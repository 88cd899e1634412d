"""Refused with: Does the result tell how many layers each rank gets, or which?"""

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

    limit, sizes, first = limit_of(costs, ranks), [], 0
    for later in range(ranks - 1, -1, -1):
        end = first + 1
        while end < len(costs) - later and sum(costs[first : end + 1]) <= limit:
            end += 1
        sizes.append(list(range(first, end)))
        first = end
    return sizes
