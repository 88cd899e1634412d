"""Refused with: Do you hand out one array of indices for each batch?"""


def minibatches(n, batch_size, rng):
    order = rng.permutation(n)
    for start in range(0, n, batch_size):
        order[start : start + batch_size]
