"""Refused with: Whose numbers did you change on the way?"""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    if comm.rank != SERVER:
        gradient *= rate
        comm.Send(gradient, dest=SERVER)
        comm.Recv(parameters, source=SERVER)
        return
    incoming, total = np.empty_like(parameters), np.zeros_like(parameters)
    for worker in range(1, comm.size):
        comm.Recv(incoming, source=worker)
        total += incoming
    if comm.size > 1:
        parameters -= total / (comm.size - 1)
    for worker in range(1, comm.size):
        comm.Send(parameters, dest=worker)
