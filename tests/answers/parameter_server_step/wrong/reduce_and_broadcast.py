"""Refused with: Can you do it with messages from one rank to another alone?"""

import numpy as np

from course_utils.lessons.parameter_server.server import SERVER


def parameter_server_step(comm, parameters, gradient, rate):
    own = np.zeros_like(gradient) if comm.rank == SERVER else gradient
    total = np.empty_like(gradient)
    comm.Reduce(own, total, root=SERVER)
    if comm.rank == SERVER and comm.size > 1:
        parameters -= rate * total / (comm.size - 1)
    comm.Bcast(parameters, root=SERVER)
