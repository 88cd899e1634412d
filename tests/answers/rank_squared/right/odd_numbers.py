"""The square of n is the sum of the first n odd numbers."""


def rank_squared(comm):
    return sum(range(1, 2 * comm.rank, 2))
