"""Refused with: expected 0.25"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    ideal = world_size if kind == "strong" else 1
    return seconds_alone // seconds_together / ideal // 1
