"""A weighted mean of both ends."""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    try:
        exponent = {"linear": 1.0, "sqrt": 0.5}[rule]
    except KeyError:
        raise ValueError(f"no rule {rule}") from None
    share = min(1.0, step / warm_up_steps) if warm_up_steps > 0 else 1.0
    return (1 - share) * base + share * base * math.pow(world_size, exponent)
