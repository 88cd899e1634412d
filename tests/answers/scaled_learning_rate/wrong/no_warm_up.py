"""Refused with: What happens during the warm-up?"""

import math


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    return base * {"linear": world_size, "sqrt": math.sqrt(world_size)}[rule]
