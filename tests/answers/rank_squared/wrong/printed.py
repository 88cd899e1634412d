"""Refused with: It was printed, but was it returned?"""


def rank_squared(comm):
    print(comm.rank**2)
