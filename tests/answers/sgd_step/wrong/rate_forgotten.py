"""Refused with: How long is a step?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w -= g
