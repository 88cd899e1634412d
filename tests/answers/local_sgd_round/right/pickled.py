"""The all-reduce of Python objects."""

import numpy as np


def local_sgd_round(comm, parameters, gradient, batches, rate):
    for batch in list(batches):
        np.subtract(parameters, rate * gradient(parameters, batch), out=parameters)
    parameters[:] = comm.allreduce(parameters) / comm.size
