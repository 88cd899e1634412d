"""Refused with: Does every rank make the same calls?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    total = np.empty_like(parameters)
    if comm.rank > 0:
        comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
