"""Refused with: What is the staleness of a fresh gradient, and can you divide by it?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate / staleness
