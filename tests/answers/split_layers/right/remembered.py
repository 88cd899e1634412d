"""Recursion that remembers: (cost, ends) of the best cut from a layer on."""

from functools import cache

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    n = len(costs)
    if not 1 <= ranks <= n or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    @cache
    def worst(first, pieces):
        if pieces == 1:
            return sum(costs[first:])
        return min(max(sum(costs[first:end]), worst(end, pieces - 1)) for end in range(first + 1, n - pieces + 2))

    limit, first, sizes = worst(0, ranks), 0, []
    for left in range(ranks - 1, 0, -1):
        end = n - left
        while sum(costs[first:end]) > limit or worst(end, left) > limit:
            end -= 1
        sizes.append(end - first)
        first = end
    return [*sizes, n - first]
