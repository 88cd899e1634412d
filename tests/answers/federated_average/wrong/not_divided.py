"""Refused with: What is the sum divided by?"""

import numpy as np


def federated_average(comm, parameters, examples):
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    if total[-1] > 0:
        parameters[:] = total[:-1]
