"""Refused with: What does the docstring promise where there is no rank?"""

from functools import cache

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if ranks > len(costs) or any(cost < 0 for cost in costs):
        raise CourseError("There are more ranks than layers, or a cost is below 0.")

    @cache
    def best(start, pieces):
        if pieces == 1:
            return sum(costs[start:])
        ends = range(start + 1, len(costs) - pieces + 2)
        return min(max(sum(costs[start:end]), best(end, pieces - 1)) for end in ends)

    limit, sizes, start = best(0, ranks), [], 0
    for left in reversed(range(ranks)):
        end, total = start + 1, costs[start]
        while end < len(costs) - left and total + costs[end] <= limit:
            total += costs[end]
            end += 1
        sizes.append(end - start)
        start = end
    return sizes
