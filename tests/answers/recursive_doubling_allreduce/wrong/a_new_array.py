"""Refused with: Did the result arrive in the vector that you were given?

`vector = vector + theirs` gives the name to another array.
"""

import numpy as np


def recursive_doubling_allreduce(comm, vector, op=None):
    theirs = np.empty_like(vector)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
        vector = vector + theirs
        distance *= 2
    return vector
