"""Refused with: Is momentum always 0.9?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= 0.9
        v += g
        w -= rate * v
