"""Refused with: At which step is the rate exactly `base`?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return base + (scaled - base) * (step + 1) / warm_up_steps if step < warm_up_steps else scaled
