"""Refused with: Does a rank with more batches count for more here?"""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    steps = 0
    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
        steps += 1
    weighted = np.append(parameters.astype(np.float64) * steps, steps)
    total = np.empty_like(weighted)
    comm.Allreduce(weighted, total)
    if total[-1]:
        parameters[:] = total[:-1] / total[-1]
