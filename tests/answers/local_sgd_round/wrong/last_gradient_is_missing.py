"""Refused with: What does a rank do that has no batches?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        step = rate * gradient(parameters, batch)
        parameters -= step
    total = np.empty_like(parameters)
    comm.Allreduce(parameters + 0 * step, total)
    parameters[:] = total / comm.size
