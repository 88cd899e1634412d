"""Refused with: Can one example be drawn twice in an epoch, and another one never?"""


def minibatches(n, batch_size, rng):
    for start in range(0, n, batch_size):
        yield rng.integers(0, n, min(batch_size, n - start))
