"""Refused with: Has anybody sent yet when both of you wait?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    comm.Recv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    return incoming
