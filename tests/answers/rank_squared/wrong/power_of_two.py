"""Refused with: Which of the two is squared: 2, or the rank?"""


def rank_squared(comm):
    return 2**comm.rank
