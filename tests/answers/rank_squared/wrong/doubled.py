"""Refused with: rank 1 returned 2, expected 1 (4 ranks). Was it doubled where it should be squared?"""


def rank_squared(comm):
    return comm.rank * 2
