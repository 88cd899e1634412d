"""Refused with: Is there a `return`?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    request = comm.Irecv(incoming, source=partner)
    comm.Send(vector, dest=partner)
    request.Wait()
