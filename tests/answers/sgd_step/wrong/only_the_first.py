"""Refused with: Does every array take its step?"""


def sgd_step(parameters, gradients, rate):
    parameters[0] -= rate * gradients[0]
