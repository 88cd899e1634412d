"""Refused with: Which staleness is divided by 1, and which by 2?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate / (1 + staleness)
