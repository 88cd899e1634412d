"""Refused with: Whose numbers did you change on the way?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        g += momentum * v
        v[...] = g
        w -= rate * v
