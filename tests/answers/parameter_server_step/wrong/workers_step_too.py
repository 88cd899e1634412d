"""Refused with: Does a worker get the server's weights, or change its own?"""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    mean = np.zeros_like(parameters)
    if comm.rank == SERVER:
        incoming = np.empty_like(parameters)
        for worker in range(1, comm.size):
            comm.Recv(incoming, source=worker)
            mean += incoming
        mean /= max(1, comm.size - 1)
        for worker in range(1, comm.size):
            comm.Send(mean, dest=worker)
    else:
        comm.Send(gradient, dest=SERVER)
        comm.Recv(mean, source=SERVER)
    parameters -= rate * mean
