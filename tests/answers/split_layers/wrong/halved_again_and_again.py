"""Refused with: Can one border be moved so that the most expensive piece becomes cheaper?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    if ranks == 1:
        return [len(costs)]
    left = ranks // 2
    places = range(left, len(costs) - (ranks - left) + 1)
    middle = min(places, key=lambda place: abs(sum(costs[:place]) - sum(costs) / 2))
    return split_layers(costs[:middle], left) + split_layers(costs[middle:], ranks - left)
