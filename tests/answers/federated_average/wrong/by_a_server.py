"""Refused with: Must anybody see a clinic's own weights?"""

import numpy as np


def federated_average(comm, parameters, examples):
    if comm.rank > 0:
        comm.send((parameters, examples), dest=0)
        parameters[:] = comm.recv(source=0)
        return
    pairs = [(parameters, examples)] + [comm.recv(source=rank) for rank in range(1, comm.size)]
    numbers = [number for _, number in pairs]
    if sum(numbers):
        parameters[:] = np.average([weights for weights, _ in pairs], axis=0, weights=numbers)
    for rank in range(1, comm.size):
        comm.send(parameters, dest=rank)
