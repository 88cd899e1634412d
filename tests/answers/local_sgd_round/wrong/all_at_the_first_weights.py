"""Refused with: Where do the weights stand when the second gradient is asked for?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    parameters -= rate * sum(gradient(parameters, batch) for batch in batches)
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
