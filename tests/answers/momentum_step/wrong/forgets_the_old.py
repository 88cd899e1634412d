"""Refused with: How much of the old velocity is left after a step?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for p, g, v in zip(parameters, gradients, velocities):
        v[...] = momentum * g
        p -= rate * v
