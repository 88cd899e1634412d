"""Refused with: Does all randomness come from `rng`?"""

import numpy as np


def minibatches(n, batch_size, rng):
    order = np.random.permutation(n)
    for start in range(0, n, batch_size):
        yield order[start : start + batch_size]
