"""Refused with: Is `base` held during the warm-up, or does it climb?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    scaled = base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return base if step < warm_up_steps else scaled
