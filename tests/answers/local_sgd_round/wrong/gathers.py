"""Refused with: Must every rank see the weights of every other?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    everybodys = np.empty((comm.size, len(parameters)), parameters.dtype)
    comm.Allgather(parameters, everybodys)
    parameters[:] = everybodys.mean(axis=0)
