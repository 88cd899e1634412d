"""Refused with: Is this the speed-up, or the share of it that P ranks could give?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    return seconds_alone / seconds_together
