"""Refused with: Does it work for an array of any shape, even an empty one?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v += g
        if abs(v).max() > 0:
            w -= rate * v
