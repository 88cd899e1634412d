"""Refused with: What does a local step need from the other ranks?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    total = np.empty_like(parameters)
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
        comm.Allreduce(parameters, total)
        parameters[:] = total / comm.size
