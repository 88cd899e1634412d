"""Refused with: What does a clinic without examples change, and what does it get?"""

import numpy as np


def federated_average(comm, parameters, examples):
    weighted = np.append(parameters.astype(np.float64) * examples, examples)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    if examples > 0:
        parameters[:] = total[:-1] / total[-1]
