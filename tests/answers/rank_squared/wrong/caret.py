"""Refused with: In Python, is `^` a power?"""


def rank_squared(comm):
    return comm.rank ^ 2
