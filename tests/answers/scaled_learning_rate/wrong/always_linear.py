"""Refused with: Does the rule ask for P here, or for its square root?"""


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    if rule not in ("linear", "sqrt"):
        raise ValueError(rule)
    scaled = base * world_size
    return base + (scaled - base) * step / warm_up_steps if step < warm_up_steps else scaled
