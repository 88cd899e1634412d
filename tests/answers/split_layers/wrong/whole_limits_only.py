"""Refused with: Are costs whole numbers?"""

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    if not 1 <= ranks <= len(costs) or min(costs) < 0:
        raise CourseError("That cannot be cut.")

    low, high = int(max(costs)), int(sum(costs)) + 1
    while low < high:
        middle = (low + high) // 2
        if fill(costs, ranks, middle):
            high = middle
        else:
            low = middle + 1
    return fill(costs, ranks, low)


def fill(costs, ranks, limit):
    sizes, first = [], 0
    for later in range(ranks - 1, -1, -1):
        end = first
        while end < len(costs) - later and sum(costs[first : end + 1]) <= limit:
            end += 1
        sizes.append(end - first)
        first = end
    return sizes if first == len(costs) and min(sizes) else None
