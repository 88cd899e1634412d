"""Refused with: Can you do it with messages from one rank to another alone?"""

import numpy as np


def parameter_server_step(comm, parameters, gradient, rate):
    total = np.empty_like(gradient)
    comm.Allreduce(gradient, total)
    parameters -= rate * total / comm.size
