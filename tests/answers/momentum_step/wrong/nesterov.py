"""Refused with: How often does the gradient count in one step?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v += g
        w -= rate * (g + momentum * v)
