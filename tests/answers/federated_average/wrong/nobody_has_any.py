"""Refused with: What is the mean where nobody has an example?"""

import numpy as np


def federated_average(comm, parameters, examples):
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    parameters[:] = total[:-1] / total[-1]
