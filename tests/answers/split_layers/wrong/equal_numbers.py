"""Refused with: Shall the pieces have equally many layers, or cost equally much?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    each, rest = divmod(len(costs), ranks)
    return [each + (rank < rest) for rank in range(ranks)]
