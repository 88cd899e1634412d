"""A match statement."""

import math


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if not all(math.isfinite(one) and one > 0 for one in (seconds_alone, seconds_together, world_size)):
        raise ValueError("seconds and ranks are above zero")
    match kind:
        case "strong":
            return seconds_alone / world_size / seconds_together
        case "weak":
            return seconds_alone / seconds_together
        case _:
            raise ValueError(f"{kind!r} is neither strong nor weak")
