"""A loop over positions."""


def sgd_step(parameters, gradients, rate):
    for i in range(len(parameters)):
        parameters[i] -= rate * gradients[i]
