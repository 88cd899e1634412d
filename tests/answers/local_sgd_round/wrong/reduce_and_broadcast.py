"""Refused with: Could one call add the weights of all ranks and hand the sum to all?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    comm.Reduce(parameters, total, root=0)
    comm.Bcast(total, root=0)
    parameters[:] = total / comm.size
