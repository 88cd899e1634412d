"""Shuffles an array, and cuts where the pieces end."""

import numpy as np


def minibatches(n, batch_size, rng):
    indices = np.arange(n)
    rng.shuffle(indices)
    if n == 0:
        return []
    return np.split(indices, range(batch_size, n, batch_size))
