"""Refused with: What does the docstring promise for a number that is not above zero?"""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if kind == "strong":
        return seconds_alone / (world_size * seconds_together)
    if kind == "weak":
        return seconds_alone / seconds_together
    raise ValueError(kind)
