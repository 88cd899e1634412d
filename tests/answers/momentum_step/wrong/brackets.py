"""Refused with: What is multiplied by momentum: the old velocity, or more?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v += g
        v *= momentum
        w -= rate * v
