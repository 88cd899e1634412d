"""Refused with: Could the number of examples travel with the weights?"""

import numpy as np


def federated_average(comm, parameters, examples):
    total = np.empty(len(parameters))
    comm.Allreduce(parameters.astype(np.float64) * examples, total)
    everybody = comm.allreduce(examples)
    if everybody:
        parameters[:] = total / everybody
