"""Refused with: Which call says that the request is complete?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    comm.Isend(vector, dest=partner)
    comm.Recv(incoming, source=partner)
    return incoming
