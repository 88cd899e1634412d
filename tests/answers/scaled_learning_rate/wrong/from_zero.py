"""Refused with: Does the climb begin at 0, or at `base`?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return scaled * min(1, step / warm_up_steps) if warm_up_steps else scaled
