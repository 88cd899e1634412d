"""Refused with: Is the rate to grow with the number of ranks, or to shrink?"""


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    return base / world_size
