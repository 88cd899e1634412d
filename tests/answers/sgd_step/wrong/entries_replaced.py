"""Refused with: Do the arrays themselves change, or did you make new ones?"""


def sgd_step(parameters, gradients, rate):
    for i in range(len(parameters)):
        parameters[i] = parameters[i] - rate * gradients[i]
