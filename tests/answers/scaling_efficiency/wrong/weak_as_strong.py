"""Refused with: How much work do P ranks do together in weak scaling?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    return seconds_alone / (world_size * seconds_together)
