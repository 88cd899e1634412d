"""Refused with: Which batches may be shorter than batch_size?"""


def minibatches(n, batch_size, rng):
    order = rng.permutation(n)
    for stop in range(n % batch_size or batch_size, n + 1, batch_size):
        yield order[max(0, stop - batch_size) : stop]
