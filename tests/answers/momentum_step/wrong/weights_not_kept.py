"""Refused with: Do the weights themselves change, or did you make new ones?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v += g
        w = w - rate * v
