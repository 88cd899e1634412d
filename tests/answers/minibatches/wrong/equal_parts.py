"""Refused with: Which batches may be shorter than batch_size?"""

import math

import numpy as np


def minibatches(n, batch_size, rng):
    if n == 0:
        return []
    return np.array_split(rng.permutation(n), math.ceil(n / batch_size))
