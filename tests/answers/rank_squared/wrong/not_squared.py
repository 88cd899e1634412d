"""Refused with: Was the rank squared?"""


def rank_squared(comm):
    return comm.rank
