"""Refused with: Does the line go on after the last step of the warm-up?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return base + (scaled - base) * step / warm_up_steps if warm_up_steps else scaled
