"""Refused with: Uphill or downhill?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w += rate * g
