"""A fresh gradient counts as one of age 1."""


def staleness_scaled_lr(rate, staleness):
    if not staleness >= 0:
        raise ValueError(staleness)
    return rate * (1 / (staleness or 1))
