"""Sorts by random keys, takes from the front until nothing is left."""

import numpy as np


def minibatches(n, batch_size, rng):
    left = np.argsort(rng.random(n))
    while len(left):
        print("a batch of", min(batch_size, len(left)))
        yield left[:batch_size]
        left = left[batch_size:]
