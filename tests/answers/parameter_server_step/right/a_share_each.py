"""Each gradient moves the weights by its share, and the answers wait for the last."""

import numpy as np


def parameter_server_step(comm, parameters, gradient, rate):
    if comm.rank > 0:
        comm.Ssend(gradient, dest=0)
        comm.Recv(parameters, source=0)
        return
    place = parameters.copy()
    share = rate / max(1, comm.size - 1)
    for worker in reversed(range(1, comm.size)):
        comm.Recv(place, source=worker)
        np.subtract(parameters, share * place, out=parameters, casting="same_kind")
    for worker in range(1, comm.size):
        comm.Ssend(parameters, dest=worker)
