"""Refused with: Has the place for the partner's vector the same dtype as the vector?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.zeros(len(vector))
    comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
    return incoming
