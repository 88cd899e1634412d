"""Refused with: Should the result be a number or a text?"""


def rank_squared(comm):
    return f"{comm.rank**2}"
