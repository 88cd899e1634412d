"""Refused with: Does an older gradient get a longer step, or a shorter one?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate * max(1, staleness)
