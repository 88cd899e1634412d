"""Refused with: Is the place as long as the vector that arrives?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty(1, vector.dtype)
    comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
    return incoming
