"""Refused with: How many operators does one proposal change?"""


def propose(strategy, choices, random):
    return [own[random.integers(len(own))] for own in choices]
