"""Refused with: Is this rank's own square asked for, or all of them?"""


def rank_squared(comm):
    return [n**2 for n in range(comm.size)]
