"""Matrix by matrix, each part added where it belongs."""

import numpy as np


def matmul_backward(gradient, a, b):
    to_a, to_b = np.zeros_like(a), np.zeros_like(b)
    lead = gradient.shape[:-2]
    if gradient.size == 0 and 0 in lead:
        return to_a, to_b
    part_a, part_b = ([side if side != 1 else 0 for side in x.shape[:-2]] for x in (a, b))
    for place in np.ndindex(*lead):
        in_a = tuple(i if side else 0 for i, side in zip(place[len(lead) - len(part_a) :], part_a))
        in_b = tuple(i if side else 0 for i, side in zip(place[len(lead) - len(part_b) :], part_b))
        to_a[in_a] += gradient[place] @ b[in_b].T
        to_b[in_b] += a[in_a].T @ gradient[place]
    return to_a, to_b
