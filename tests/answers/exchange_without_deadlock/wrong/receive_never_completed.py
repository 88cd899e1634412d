"""Refused with: Which call says that the request is complete?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.zeros_like(vector)
    comm.Irecv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    return incoming
