"""Gradients in the order in which they come, with tags of their own."""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    workers = comm.size - 1
    if comm.rank != SERVER:
        comm.Send(gradient, SERVER, tag=7)
        comm.Recv(parameters, SERVER, tag=8)
    elif workers > 0:
        mean, incoming = np.zeros(len(parameters)), np.empty_like(gradient)
        for _ in range(workers):
            comm.Recv(incoming, tag=7)
            mean += incoming / workers
        parameters -= (rate * mean).astype(parameters.dtype)
        for worker in range(workers, 0, -1):
            comm.Send(parameters, worker, tag=8)
