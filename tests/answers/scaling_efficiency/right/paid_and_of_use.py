"""Seconds paid, seconds of use."""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak"):
        raise ValueError(kind)
    if seconds_alone <= 0 or seconds_together <= 0 or world_size <= 0:
        raise ValueError("not above zero")
    paid = world_size * seconds_together
    of_use = seconds_alone if kind == "strong" else world_size * seconds_alone
    return of_use / paid
