"""Refused with: Does the rate fall like 1/τ, or in another way?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate * 0.5**staleness
