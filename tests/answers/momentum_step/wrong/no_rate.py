"""Refused with: How long is a step?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for p, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v += g
        p -= v
