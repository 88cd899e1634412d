"""Climbs stair by stair, as an optimizer's scheduler would, and says what it does."""

import sys


def scaled_learning_rate(base, step, world_size, rule="linear", warm_up_steps=0):
    print(f"rule {rule}, step {step}", file=sys.stderr)
    match rule:
        case "linear":
            top = base * world_size
        case "sqrt":
            top = base * pow(world_size, 0.5)
        case _:
            raise ValueError(f"what is {rule}?")
    rate = base if warm_up_steps else top
    for _ in range(min(step, warm_up_steps)):
        rate += (top - base) / warm_up_steps
    return rate
