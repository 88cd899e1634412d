"""A table of NumPy, prefixes first, then the sizes from the back of all ties."""

import numpy as np

from course_utils.errors import CourseError


def split_layers(costs, ranks):
    n = len(costs)
    if not 0 < ranks <= n:
        raise CourseError(f"{n} layers on {ranks} ranks?")
    if np.min(costs) < 0:
        raise CourseError("A cost below 0?")
    total = np.concatenate([[0.0], np.cumsum(costs)])
    table = np.full((ranks + 1, n + 1), np.inf)  # [k, i]: layers from i on, on k ranks
    table[0, n] = 0
    for k in range(1, ranks + 1):
        for i in range(n):
            table[k, i] = np.maximum(total[i + 1 :] - total[i], table[k - 1, i + 1 :]).min()
    sizes, i = [], 0
    for k in range(ranks, 0, -1):
        fits = np.maximum(total[i + 1 :] - total[i], table[k - 1, i + 1 :]) <= table[ranks, 0]
        sizes.append(int(np.flatnonzero(fits)[-1]) + 1)
        i += sizes[-1]
    return sizes
