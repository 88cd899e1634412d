"""Refused with: Which examples does nobody ever see?"""


def minibatches(n, batch_size, rng):
    order = rng.permutation(n)
    for batch in range(n // batch_size):
        yield order[batch * batch_size : (batch + 1) * batch_size]
