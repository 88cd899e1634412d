"""Refused with: What does a local step need from the other ranks?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    total = np.empty_like(parameters)
    for batch in batches:
        comm.Allreduce(gradient(parameters, batch), total)
        parameters -= rate * total / comm.size
