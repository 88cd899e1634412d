"""Refused with: What is the length of a warm-up that there is not?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return base + (scaled - base) * min(1, step / warm_up_steps)
