"""Refused with: Can one calculate with a whole list, or with each array in it?"""


def sgd_step(parameters, gradients, rate):
    parameters -= rate * gradients
