"""NumPy draws the line."""

import numpy as np


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    if rule not in ("linear", "sqrt"):
        raise ValueError(rule)
    scaled = base * (world_size if rule == "linear" else np.sqrt(world_size))
    if not warm_up_steps:
        return float(scaled)
    return float(np.interp(step, [0, warm_up_steps], [base, scaled]))
