"""Refused with: Is your own vector still what it was?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
    vector[:] = incoming
    return vector
