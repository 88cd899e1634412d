"""Refused with: returned nothing, expected 0 (4 ranks). Is there a `return` that every rank reaches?"""


def rank_squared(comm):
    squared = comm.rank**2  # noqa: F841
