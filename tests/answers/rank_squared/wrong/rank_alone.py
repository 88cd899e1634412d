"""Refused with: Which object knows this rank's number?"""


def rank_squared(comm):
    return rank**2  # noqa: F821
