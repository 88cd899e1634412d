"""Refused with: How often can one walk through `batches`, and does it have a length?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for k in range(len(batches)):
        batch = batches[k]
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
