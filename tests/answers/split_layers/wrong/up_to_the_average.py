"""Refused with: What is left for the last rank when each earlier one stops at the average?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    average, sizes, piece = sum(costs) / ranks, [], []
    for place, cost in enumerate(costs):
        left = len(costs) - place
        if piece and len(sizes) < ranks - 1:
            if sum(piece) + cost > average or left == ranks - 1 - len(sizes):
                sizes.append(len(piece))
                piece = []
        piece.append(cost)
    return [*sizes, len(piece)]
