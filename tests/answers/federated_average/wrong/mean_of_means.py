"""Refused with: Does every clinic count alike, however few examples it has?"""

import numpy as np


def federated_average(comm, parameters, examples):
    total = np.empty_like(parameters)
    comm.Allreduce(parameters, total)
    parameters[:] = total / comm.size
