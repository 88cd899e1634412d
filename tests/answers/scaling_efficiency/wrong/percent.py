"""Refused with: A share, or percent?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    if kind == "weak":
        return 100 * seconds_alone / seconds_together
    return 100 * seconds_alone / (world_size * seconds_together)
