"""Refused with: What does the docstring promise for a rule that does not exist?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * (math.sqrt(world_size) if rule == "sqrt" else world_size)
    return base + (scaled - base) * step / warm_up_steps if step < warm_up_steps else scaled
