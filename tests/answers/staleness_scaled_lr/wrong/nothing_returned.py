"""Refused with: Do you return the rate?"""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError("the staleness is below 0")
    rate = rate / max(staleness, 1)
