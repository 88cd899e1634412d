"""Try limits in rising order; fill piece after piece."""

from itertools import accumulate

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    n = len(costs)
    if ranks < 1 or ranks > n:
        raise CourseError("Every rank needs a layer.")
    if any(cost < 0 for cost in costs):
        raise CourseError("No cost is below 0.")
    total = [0, *accumulate(costs)]
    limits = sorted({total[b] - total[a] for a in range(n) for b in range(a + 1, n + 1)})
    low, high = 0, len(limits) - 1
    while low < high:
        middle = (low + high) // 2
        if fill(total, ranks, limits[middle]):
            high = middle
        else:
            low = middle + 1
    return fill(total, ranks, limits[low])


def fill(total, ranks, limit):
    n, sizes, first = len(total) - 1, [], 0
    for piece in range(ranks):
        end = first
        while end < n - (ranks - piece - 1) and total[end + 1] - total[first] <= limit:
            end += 1
        if end == first:
            return None
        sizes.append(end - first)
        first = end
    return sizes if first == n else None
