"""Refused with: Are the examples shuffled, or only the batches?"""

import numpy as np


def minibatches(n, batch_size, rng):
    starts = np.arange(0, n, batch_size)
    full = n // batch_size * batch_size
    starts = [*rng.permutation(starts[starts < full]), *starts[starts >= full]]
    for start in starts:
        yield np.arange(start, min(n, start + batch_size))
