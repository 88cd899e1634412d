"""Refused with: Do the arrays themselves change, or did you make new ones?"""


def sgd_step(parameters, gradients, rate):
    return [w - rate * g for w, g in zip(parameters, gradients)]
