"""Refused with: Whose message does your receive take?"""

import numpy as np


def exchange_without_deadlock(comm, vector, partner):
    incoming = np.empty_like(vector)
    request = comm.Irecv(incoming)
    comm.Send(vector, dest=partner)
    request.Wait()
    return incoming
