"""Refused with: Does every array take its step?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w -= rate * g
        return w
