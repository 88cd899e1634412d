"""Refused with: Is that the rank, or how many ranks there are?"""


def rank_squared(comm):
    return comm.size**2
