"""Refused with: What is left for the last rank when each earlier one stops at the average?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    average, sizes, size, total = sum(costs) / ranks, [], 0, 0
    for place, cost in enumerate(costs):
        size, total = size + 1, total + cost
        needed = ranks - 1 - len(sizes)
        if needed and (total >= average or len(costs) - place - 1 == needed):
            sizes.append(size)
            size, total = 0, 0
    return [*sizes, size]
