"""Refused with: Does a rank without batches take part?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    batches = list(batches)
    if not batches:
        return
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
