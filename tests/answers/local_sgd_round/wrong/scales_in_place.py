"""Refused with: Whose numbers did you change on the way?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        step = gradient(parameters, batch)
        step *= rate
        parameters -= step
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
