"""Refused with: Did the vector arrive in the array that you were given?"""

import numpy as np


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if place < step and place + step < comm.size:
            comm.Send(vector, dest=(comm.rank + step) % comm.size)
        elif step <= place < 2 * step:
            received = np.empty_like(vector)
            comm.Recv(received, source=(comm.rank - step) % comm.size)
            vector = received
        step *= 2
    return vector
