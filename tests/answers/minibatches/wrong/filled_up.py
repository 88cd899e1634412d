"""Refused with: Must the last batch be as long as the others?"""

import numpy as np


def minibatches(n, batch_size, rng):
    order = rng.permutation(n)
    order = np.concatenate([order, order[: -n % batch_size]])
    for start in range(0, n, batch_size):
        yield order[start : start + batch_size]
