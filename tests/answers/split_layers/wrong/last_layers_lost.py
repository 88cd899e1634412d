"""Refused with: Is every layer in one piece, the last ones too?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    limit, sizes, first = max(max(costs), sum(costs) / ranks), [], 0
    for later in range(ranks - 1, -1, -1):
        end = first + 1
        while end < len(costs) - later and sum(costs[first : end + 1]) <= limit:
            end += 1
        sizes.append(end - first)
        first = end
    return sizes
