"""Refused with: is called with 1 argument, but takes (nothing)"""


def rank_squared():
    return 4
