"""Started, and waited for."""

import numpy as np


def federated_average(comm, parameters, examples):
    vector = np.hstack([np.multiply(parameters, examples, dtype=np.float64), float(examples)])
    total = np.zeros(len(vector))
    comm.Iallreduce(vector, total).Wait()
    *_, everybody = total
    if everybody > 0:
        parameters[:] = (total[:-1] / everybody).astype(parameters.dtype)
