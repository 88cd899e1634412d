"""Refused with: What does the docstring promise for a kind that does not exist?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("not above zero")
    if kind == "strong":
        return seconds_alone / (world_size * seconds_together)
    return seconds_alone / seconds_together
