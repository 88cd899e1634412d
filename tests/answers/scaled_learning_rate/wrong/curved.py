"""Refused with: A straight line, or a curve?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    factor = {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
    return base * factor ** (step / warm_up_steps) if step < warm_up_steps else base * factor
