"""Refused with: Must anybody see a clinic's own weights?"""

import numpy as np


def federated_average(comm, parameters, examples):
    pairs = comm.allgather((parameters, examples))
    everybody = sum(number for _, number in pairs)
    if everybody:
        parameters[:] = sum(number * weights.astype(np.float64) for weights, number in pairs) / everybody
