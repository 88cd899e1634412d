"""Refused with: Is the square of a whole number a whole number?"""


def rank_squared(comm):
    return float(comm.rank) ** 2
