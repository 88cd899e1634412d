"""What travels is how far each has come."""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    local = parameters.copy()
    for batch in batches:
        local = local - rate * gradient(local, batch)
    change = local - parameters
    mean = np.zeros_like(change)
    comm.Allreduce(change / comm.size, mean)
    parameters += mean
