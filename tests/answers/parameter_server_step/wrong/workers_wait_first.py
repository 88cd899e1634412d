"""Refused with: Who waits for whom, and does that message ever come?"""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    if comm.rank != SERVER:
        comm.Recv(parameters, source=SERVER)
        comm.Send(gradient, dest=SERVER)
        return
    gradients = np.empty((comm.size - 1, len(parameters)), parameters.dtype)
    for worker in range(1, comm.size):
        comm.Recv(gradients[worker - 1], source=worker)
    parameters -= rate * gradients.mean(axis=0)
    for worker in range(1, comm.size):
        comm.Send(parameters, dest=worker)
