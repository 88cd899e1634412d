"""Refused with: Which velocity moves the weights: that from before the step, or the new one?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        w -= rate * v
        v *= momentum
        v += g
