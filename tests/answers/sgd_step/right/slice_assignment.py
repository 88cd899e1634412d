"""New numbers into the old array, and the list handed back."""

import sys


def sgd_step(parameters, gradients, rate):
    print("a step of rate", rate, file=sys.stderr)
    for w, g in zip(parameters, gradients):
        w[:] = w - rate * g
    return parameters
