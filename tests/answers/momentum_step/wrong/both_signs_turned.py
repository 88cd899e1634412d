"""Refused with: Uphill or downhill?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v -= g
        w += rate * v
