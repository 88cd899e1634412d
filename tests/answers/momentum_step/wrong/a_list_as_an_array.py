"""Refused with: Can one calculate with a whole list, or with each array in it?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    velocities = momentum * velocities + gradients
    parameters -= rate * velocities
