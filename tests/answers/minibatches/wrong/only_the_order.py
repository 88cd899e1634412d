"""Refused with: Do you hand out one array of indices for each batch?"""


def minibatches(n, batch_size, rng):
    return rng.permutation(n)
