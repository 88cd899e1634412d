"""Refused with: Does the rule ask for P here, or for its square root?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": math.sqrt(world_size), "sqrt": world_size}[rule]
    return base + (scaled - base) * step / warm_up_steps if step < warm_up_steps else scaled
