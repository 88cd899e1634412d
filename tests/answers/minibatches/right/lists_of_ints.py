"""Plain Python lists, one index after the other."""

import sys


def minibatches(n, batch_size, rng):
    batch = []
    for index in rng.permutation(n).tolist():
        batch.append(index)
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch:
        print("a shorter batch at the end", file=sys.stderr)
        yield batch
