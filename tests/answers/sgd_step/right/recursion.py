"""The first pair, then the rest."""


def sgd_step(parameters, gradients, rate):
    if len(parameters) == 0:
        return
    parameters[0][...] += -rate * gradients[0]
    sgd_step(parameters[1:], gradients[1:], rate)
