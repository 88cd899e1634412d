"""Best cuts of the first layers; then the last border that is good enough, one by one."""

import math

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    layers = len(costs)
    if layers < ranks or ranks <= 0:
        raise CourseError("Too many ranks, or none.")
    for cost in costs:
        if cost < 0:
            raise CourseError("A cost is below 0.")
    limit = worst_of(costs, ranks)
    borders = [0]
    for piece in range(1, ranks):
        good = [
            b
            for b in range(borders[-1] + 1, layers)
            if sum(costs[borders[-1] : b]) <= limit and worst_of(costs[b:], ranks - piece) <= limit
        ]
        borders.append(max(good))
    return [b - a for a, b in zip(borders, [*borders[1:], layers])]


def worst_of(costs, ranks):
    best = [0] + [math.inf] * len(costs)
    for _ in range(ranks):
        best = [math.inf] + [min(max(best[a], sum(costs[a:b])) for a in range(b)) for b in range(1, len(costs) + 1)]
    return best[-1]
