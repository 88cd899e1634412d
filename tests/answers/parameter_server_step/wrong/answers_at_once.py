"""Refused with: May the server answer a worker before all gradients have come?"""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    if comm.rank != SERVER:
        comm.Send(gradient, dest=SERVER)
        comm.Recv(parameters, source=SERVER)
        return
    incoming = np.empty_like(parameters)
    for worker in range(1, comm.size):
        comm.Recv(incoming, source=worker)
        parameters -= rate * incoming / (comm.size - 1)
        comm.Send(parameters, dest=worker)
