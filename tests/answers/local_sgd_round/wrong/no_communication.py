"""Refused with: What do the other ranks know of this rank's weights?"""


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
