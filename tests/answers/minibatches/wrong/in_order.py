"""Refused with: Is anything shuffled?"""

import numpy as np


def minibatches(n, batch_size, rng):
    order = np.arange(n)
    for start in range(0, n, batch_size):
        yield order[start : start + batch_size]
