"""Refused with: Does every batch make a step?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
        break
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
