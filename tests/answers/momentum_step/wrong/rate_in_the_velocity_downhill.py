"""Refused with: Is the rate a part of the velocity?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v[...] = momentum * v - rate * g
        w += v
