"""Refused with: Is that your own vector?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
    return vector
