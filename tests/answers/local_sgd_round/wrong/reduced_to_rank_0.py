"""Refused with: Do all ranks have the mean in the end?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    comm.Reduce(parameters, total, root=0)
    if comm.rank == 0:
        parameters[:] = total / comm.size
