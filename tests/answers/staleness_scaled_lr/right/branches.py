"""Three branches."""


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError("a staleness is 0 or more")
    if staleness == 0:
        return rate
    return rate / staleness
