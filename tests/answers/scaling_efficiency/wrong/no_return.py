"""Refused with: Where is the `return`?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind not in ("strong", "weak") or min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("makes no sense")
    share = seconds_alone / seconds_together
    if kind == "strong":
        share /= world_size
