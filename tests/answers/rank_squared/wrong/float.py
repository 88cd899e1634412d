"""Refused with: rank 0 returned the float 0.0, expected the integer 0"""


def rank_squared(comm):
    return float(comm.rank) ** 2
