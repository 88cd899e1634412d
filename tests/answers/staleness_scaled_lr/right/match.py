"""A match for every kind of age."""


def staleness_scaled_lr(rate, staleness):
    match staleness:
        case 0 | 1:
            return rate
        case _ if staleness > 1:
            return rate / staleness
    raise ValueError(f"staleness {staleness} is below 0")
