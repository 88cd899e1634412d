"""Refused with: rank 2 raised ZeroDivisionError"""


def rank_squared(comm):
    return comm.rank**2 + 0 / (comm.rank - 2)
