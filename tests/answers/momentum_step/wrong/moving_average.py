"""Refused with: Is the new gradient scaled before it is added?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v *= momentum
        v += (1 - momentum) * g
        w -= rate * v
