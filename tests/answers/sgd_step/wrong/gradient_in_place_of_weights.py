"""Refused with: Where do the weights come in?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w[:] = -rate * g
