"""Refused with: Is `partner` the one you sent to and received from?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.Sendrecv(vector, dest=right, recvbuf=incoming, source=left)
    return incoming
