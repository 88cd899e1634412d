"""Refused with: rank 0 raised AttributeError"""


def rank_squared(comm):
    return comm.rang**2
