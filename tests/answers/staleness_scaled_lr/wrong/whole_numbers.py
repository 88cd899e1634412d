"""Refused with: Is the result a whole number?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate // max(1, staleness)
