"""A first batch, and the rest in the same way."""


def minibatches(n, batch_size, rng):
    def cut(order):
        if len(order) == 0:
            return []
        return [order[:batch_size], *cut(order[batch_size:])]

    return cut(rng.choice(n, n, replace=False)) if n else []
