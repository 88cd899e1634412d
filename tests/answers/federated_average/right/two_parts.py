"""In the dtype of the weights where that is float64, else in float64; no branch for the division."""

import numpy as np


def federated_average(comm, parameters, examples):
    share = np.empty(len(parameters) + 1)
    share[:-1] = parameters
    share[:-1] *= examples
    share[-1] = examples
    comm.Allreduce(share.copy(), share)
    if share[-1] == 0:
        return
    np.copyto(parameters, share[:-1] / share[-1], casting="same_kind")
