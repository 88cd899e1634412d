"""Refused with: Whose numbers did you change on the way?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        g *= rate
        w -= g
