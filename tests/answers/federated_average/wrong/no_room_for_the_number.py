"""Refused with: Have both arrays the same length and dtype?"""

import numpy as np


def federated_average(comm, parameters, examples):
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(parameters)
    comm.Allreduce(weighted, total)
    if total[-1] > 0:
        parameters[:] = total[:-1] / total[-1]
