"""Refused with: In which array does the next call look for the velocity?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        v = momentum * v + g
        w -= rate * v
