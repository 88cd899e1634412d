"""In float64, and waited for."""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    weights = parameters.astype(np.float64)
    for batch in batches:
        weights -= rate * np.asarray(gradient(weights.astype(parameters.dtype), batch), dtype=np.float64)
    weights /= comm.size
    total = np.empty_like(weights, dtype=parameters.dtype)
    comm.Iallreduce(weights.astype(parameters.dtype), total).Wait()
    np.copyto(parameters, total)
