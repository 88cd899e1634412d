"""Refused with: Which number does the first example have?"""


def minibatches(n, batch_size, rng):
    order = rng.permutation(n) + 1
    for start in range(0, n, batch_size):
        yield order[start : start + batch_size]
