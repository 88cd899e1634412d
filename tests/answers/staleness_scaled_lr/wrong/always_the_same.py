"""Refused with: What does the staleness change?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate
