"""The number of examples travels in front, summed in place."""

import numpy as np


def federated_average(comm, parameters, examples):
    from mpi4py import MPI

    vector = np.concatenate([[1.0], parameters]) * examples
    comm.Allreduce(MPI.IN_PLACE, vector, op=MPI.SUM)
    if vector[0] > 0:
        parameters[...] = vector[1:] / vector[0]
