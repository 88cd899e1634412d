"""Refused with: Do the arrays themselves change, or did you make new ones?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w = w - rate * g
