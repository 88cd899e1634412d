"""Refused with: Is a slower strategy sometimes accepted?"""


def metropolis_accept(old, new, temperature, random):
    return new <= old
