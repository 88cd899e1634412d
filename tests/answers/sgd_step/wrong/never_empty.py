"""Refused with: Does it work for an array of any shape, even an empty one?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        if abs(g).max() > 0:
            w -= rate * g
