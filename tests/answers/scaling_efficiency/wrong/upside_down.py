"""Refused with: Is more time together better, or worse?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    if kind == "weak":
        return seconds_together / seconds_alone
    return world_size * seconds_together / seconds_alone
