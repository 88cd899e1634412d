"""Straight from the docstring."""


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    if rule == "linear":
        factor = world_size
    elif rule == "sqrt":
        factor = world_size**0.5
    else:
        raise ValueError("linear or sqrt")
    if step >= warm_up_steps:
        return base * factor
    return base * (1 + (factor - 1) * step / warm_up_steps)
