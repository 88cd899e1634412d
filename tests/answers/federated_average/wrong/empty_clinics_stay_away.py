"""Refused with: Does every rank make the same calls?"""

import numpy as np


def federated_average(comm, parameters, examples):
    if examples == 0:
        return
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    if total[-1] > 0:
        parameters[:] = total[:-1] / total[-1]
