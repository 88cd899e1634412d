"""Refused with: Did the mean arrive in the array that you were given?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters = total / comm.size
