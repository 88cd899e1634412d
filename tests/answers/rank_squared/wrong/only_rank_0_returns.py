"""Refused with: rank 1 returned nothing, expected 1 (4 ranks). Is there a `return` that every rank reaches?"""


def rank_squared(comm):
    if comm.rank == 0:
        return comm.rank**2
