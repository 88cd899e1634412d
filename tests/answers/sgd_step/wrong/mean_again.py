"""Refused with: Are the gradients already a mean over the batch?"""


def sgd_step(parameters, gradients, rate):
    for w, g in zip(parameters, gradients):
        w -= rate * g / max(1, len(g))
