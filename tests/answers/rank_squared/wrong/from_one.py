"""Refused with: Do ranks count from 0 or from 1?"""


def rank_squared(comm):
    return (comm.rank + 1) ** 2
