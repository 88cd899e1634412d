"""Refused with: Can a gradient come from the future? What does the docstring promise for it?"""


def staleness_scaled_lr(rate, staleness):
    return rate / max(1, staleness)
